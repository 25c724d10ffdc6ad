// Catch2 2 (Debian 12) and 3 (Debian 13) differ in their header; nothing else in the tests knows.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
