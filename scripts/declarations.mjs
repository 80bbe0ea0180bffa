/**
 * Writes the types of what the package publishes: the compiler's declarations of its libraries and of what these name, no others, with the names of our
 * own folders (#api/…) made paths, so that other packages' compilers find them without knowing our package.json. dist/types is for import,
 * dist/types-cjs the same for require(): compilers take a declaration for a module of the kind that the nearest package.json names.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const importedName = /(\bfrom |\bimport\()(['"])([#.][^'"]*)\2/g

/** The compiler writes the default argument of inferred types out; before TypeScript 5.7 these types take no argument. */
const sharedBytes = /\b(Uint8Array|Buffer)<ArrayBufferLike>/g

/** @param {string} root of the checkout */
export function writeDeclarations(root) {
  const types = path.join(root, 'dist/types')
  execFileSync(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), '-p', path.join(root, 'tsconfig.package.json')], { stdio: 'inherit' })
  const { files: entries } = JSON.parse(fs.readFileSync(path.join(root, 'tsconfig.package.json'), 'utf8'))
  const wanted = new Set()
  for (const entry of entries) addWithImports(types, path.join(types, declarationOf(path.relative('src', entry))), wanted)
  for (const name of fs.readdirSync(types, { recursive: true, encoding: 'utf8' })) {
    const file = path.join(types, name)
    if (file.endsWith('.d.ts') && !wanted.has(file)) fs.rmSync(file)
  }
  for (const file of wanted) {
    const text = fs.readFileSync(file, 'utf8')
    const inPlace = (_, before, quote, specifier) => `${before}${quote}${published(types, file, specifier)}${quote}`
    fs.writeFileSync(file, text.replace(importedName, inPlace).replace(sharedBytes, '$1'))
  }
  const forRequire = path.join(root, 'dist/types-cjs')
  fs.cpSync(types, forRequire, { recursive: true })
  fs.writeFileSync(path.join(forRequire, 'package.json'), '{ "type": "commonjs" }\n')
}

const declarationOf = (file) => file.replace(/\.ts$/, '.d.ts')

/** Adds the declaration file and all that it imports, directly or not. */
function addWithImports(types, first, wanted) {
  const toRead = [first]
  for (let file = toRead.pop(); file !== undefined; file = toRead.pop()) {
    if (wanted.has(file)) continue
    wanted.add(file)
    for (const [, , , specifier] of fs.readFileSync(file, 'utf8').matchAll(importedName)) {
      toRead.push(specifier.startsWith('.') ? path.resolve(path.dirname(file), declarationOf(specifier)) : path.join(types, `${specifier.slice(1)}.d.ts`))
    }
  }
}

/** As the published files name it: relative, with the ending of what runs. */
function published(types, from, specifier) {
  if (specifier.startsWith('.')) return specifier.replace(/\.ts$/, '.js')
  const relative = path.relative(path.dirname(from), path.join(types, `${specifier.slice(1)}.js`)).replaceAll(path.sep, '/')
  return relative.startsWith('.') ? relative : `./${relative}`
}
