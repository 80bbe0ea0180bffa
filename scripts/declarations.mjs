/**
 * Writes the types of what the package publishes to dist/types: the compiler's declarations of src/main/package, with the names of our own
 * folders (#api/…) made paths, so that other packages' compilers find them without knowing our package.json.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

/** @param {string} root of the checkout */
export function writeDeclarations(root) {
  const types = path.join(root, 'dist/types')
  execFileSync(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', path.join(root, 'tsconfig.package.json')], { stdio: 'inherit' })
  for (const name of fs.readdirSync(types, { recursive: true, encoding: 'utf8' })) {
    const file = path.join(types, name)
    if (!file.endsWith('.d.ts')) continue
    const text = fs.readFileSync(file, 'utf8')
    fs.writeFileSync(
      file,
      text.replace(
        /(\bfrom |\bimport\()(['"])([#.][^'"]*)\2/g,
        (_, before, quote, specifier) => `${before}${quote}${published(types, file, specifier)}${quote}`,
      ),
    )
  }
}

/** As the published files name it: relative, with the ending of what runs. */
function published(types, from, specifier) {
  if (specifier.startsWith('.')) return specifier.replace(/\.ts$/, '.js')
  const relative = path.relative(path.dirname(from), path.join(types, `${specifier.slice(1)}.js`)).replaceAll(path.sep, '/')
  return relative.startsWith('.') ? relative : `./${relative}`
}
