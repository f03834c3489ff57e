// node embed.mjs DIST LICENCE OUT.cpp
// Writes the built assets of both pages as C++ string literals, with the hashes that a page's
// content-security policy allows. The licence of the library in the report's script goes before it,
// because every report is a copy of that library. Fails when an asset would close its own element.
import {createHash} from 'node:crypto';
import {readFileSync, writeFileSync} from 'node:fs';

const [dist, licencePath, outPath] = process.argv.slice(2);

function read(path, element) {
  const bytes = readFileSync(path);
  if (bytes.toString('latin1').toLowerCase().includes(`</${element}`)) {
    throw new Error(`${path} contains "</${element}", which would end its element in the page`);
  }
  return bytes;
}

// Octal escapes of three digits never swallow what follows; "?" is escaped because of trigraphs.
function literal(bytes) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 96) {
    let line = '';
    for (const byte of bytes.subarray(at, at + 96)) {
      const char = String.fromCharCode(byte);
      line += /[A-Za-z0-9 !#$%&'()*+,\-./:;<=>@[\]^_`{|}~]/.test(char)
        ? char
        : `\\${byte.toString(8).padStart(3, '0')}`;
    }
    lines.push(`    "${line}"`);
  }
  return lines.join('\n');
}

function hash(bytes) {
  return `sha256-${createHash('sha256').update(bytes).digest('base64')}`;
}

function comment(path) {
  const text = readFileSync(path, 'utf8').trim();
  if (text.includes('*/')) throw new Error(`${path} contains "*/"`);
  return Buffer.from(`/*! This page contains uPlot.\n\n${text}\n*/\n`);
}

function assets(name, page, ...before) {
  const script = Buffer.concat([...before, read(`${dist}/${page}.js`, 'script')]);
  const style = read(`${dist}/${page}.css`, 'style');
  return `const PageAssets ${name}{
    .script =
${literal(script)},
    .style =
${literal(style)},
    .script_hash = "${hash(script)}",
    .style_hash = "${hash(style)}"};
`;
}

writeFileSync(
  outPath,
  `// Made by web/report/embed.mjs.
#include "plan/report/assets.hpp"

namespace weft::plan::report {

${assets('page_assets', 'report', comment(licencePath))}
${assets('console_assets', 'console')}
}  // namespace weft::plan::report
`,
);
