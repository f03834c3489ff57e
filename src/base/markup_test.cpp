#include "base/markup.hpp"

#include <doctest/doctest.h>

using namespace weft;

TEST_CASE("what could end a text or an attribute is escaped, once, and nothing else") {
  CHECK(escape_markup("") == "");
  CHECK(escape_markup("rtsw:0 \xC3\xA9\n") == "rtsw:0 \xC3\xA9\n");
  CHECK(escape_markup("<b a=\"x\" c='&amp;'>") ==
        "&lt;b a=&quot;x&quot; c=&#39;&amp;amp;&#39;&gt;");
}

TEST_CASE("a piece of a URI: unreserved characters stay, bytes of all others become %XX") {
  CHECK(percent_encoded("Az09-_.~") == "Az09-_.~");
  CHECK(percent_encoded("a b/c?\xC3\xA9%") == "a%20b%2Fc%3F%C3%A9%25");
}
