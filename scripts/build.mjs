#!/usr/bin/env node
/**
 * Builds dist/: one bundle per entry with shared chunks (start-up reads few files), the texts for `kubectl explain`, and the types of
 * what the package publishes. Packages with native parts or run-time file look-ups stay outside the bundle.
 */
import fs from 'node:fs'
import { build } from 'esbuild'
import { writeDeclarations } from './declarations.mjs'
import { collectDescriptions } from './descriptions.mjs'

const root = new URL('../', import.meta.url).pathname
fs.rmSync(`${root}dist`, { recursive: true, force: true })
fs.mkdirSync(`${root}dist`)

await build({
  absWorkingDir: root,
  entryPoints: {
    skiff: 'src/main/skiff.ts',
    yamlWorker: 'src/apiserver/yaml/worker.ts',
    client: 'src/main/package/client.ts',
    controller: 'src/main/package/controller.ts',
    testing: 'src/testing/package.ts',
  },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
  sourcemap: true,
  legalComments: 'none',
  external: ['@peculiar/x509', 'reflect-metadata', 'lmdb'],
  banner: { js: "import { createRequire as skiffCreateRequire } from 'node:module'; const require = skiffCreateRequire(import.meta.url);" },
})
inAscii(`${root}dist/`)
fs.writeFileSync(`${root}dist/descriptions.json`, JSON.stringify(await collectDescriptions()))
writeDeclarations(root)
console.log('built dist/')

/** V8 keeps a source with any character beyond Latin-1 at two bytes each, and reads it slower; comments and regular expressions have some. */
function inAscii(dir) {
  for (const name of fs.readdirSync(dir).filter((file) => file.endsWith('.mjs'))) {
    const source = fs.readFileSync(dir + name, 'utf8')
    const escaped = source.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    if (escaped !== source) fs.writeFileSync(dir + name, escaped)
  }
}
