#include "base/markup.hpp"

#include <doctest/doctest.h>

using namespace weft;

TEST_CASE("what could end a text or an attribute is escaped, once, and nothing else") {
  CHECK(escape_markup("") == "");
  CHECK(escape_markup("rtsw:0 \xC3\xA9\n") == "rtsw:0 \xC3\xA9\n");
  CHECK(escape_markup("<b a=\"x\" c='&amp;'>") ==
        "&lt;b a=&quot;x&quot; c=&#39;&amp;amp;&#39;&gt;");
}
