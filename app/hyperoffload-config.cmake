# find_package(hyperoffload): the target hyperoffload::planner; docs/embedding has an example.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
find_dependency(yaml-cpp)
find_dependency(fmt)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/hyperoffload-targets.cmake)
