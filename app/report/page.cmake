# The page of `hyperoffload report`, as a source file: page.html with the styles, uPlot and our scripts in it.
# Without uPlot (npm ci in app/report, which scripts/setup.sh does) all else builds; `report` then says so.
set(REPORT_DIR ${CMAKE_CURRENT_LIST_DIR})
set(REPORT_PAGE_SOURCE ${CMAKE_BINARY_DIR}/report_page.cc)
set(REPORT_PARTS page.html style.css format.js charts.js timeline.js sections.js frontier.js sweep.js main.js)
list(TRANSFORM REPORT_PARTS PREPEND ${REPORT_DIR}/)
set(UPLOT_DIR ${REPORT_DIR}/node_modules/uplot/dist)
if(EXISTS ${UPLOT_DIR}/uPlot.iife.min.js AND EXISTS ${UPLOT_DIR}/uPlot.min.css)
  list(APPEND REPORT_PARTS ${UPLOT_DIR}/uPlot.iife.min.js ${UPLOT_DIR}/uPlot.min.css)
else()
  message(WARNING "uPlot is not in app/report/node_modules, so `hyperoffload report` will not work: "
                  "run scripts/setup.sh, or `npm ci --omit=dev` in app/report, and configure again")
  set(UPLOT_DIR "")
endif()
add_custom_command(
  OUTPUT ${REPORT_PAGE_SOURCE}
  COMMAND ${CMAKE_COMMAND} -DREPORT_DIR=${REPORT_DIR} -DUPLOT_DIR=${UPLOT_DIR} -DOUTPUT=${REPORT_PAGE_SOURCE}
          -P ${REPORT_DIR}/embed.cmake
  DEPENDS ${REPORT_PARTS} ${REPORT_DIR}/embed.cmake
  VERBATIM)
