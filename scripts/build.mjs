#!/usr/bin/env node
/**
 * Builds dist/: one bundle per entry with shared chunks (start-up reads few files), the libraries once more for programs that use require(), the
 * texts for `kubectl explain`, and the types of what the package publishes. Packages with native parts or run-time file look-ups stay outside the
 * bundle.
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { build } from 'esbuild'
import { buildPage } from './buildPage.mjs'
import { writeDeclarations } from './declarations.mjs'
import { collectDescriptions } from './descriptions.mjs'
import { entryPoints, external, libraries } from './entryPoints.mjs'
import { mergeChunks } from './mergeChunks.mjs'

const root = new URL('../', import.meta.url).pathname
fs.rmSync(`${root}dist`, { recursive: true, force: true })
fs.mkdirSync(`${root}dist`)

const common = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  legalComments: 'none',
  external,
}
const buildTime = { SKIFF_BUILD: JSON.stringify(buildInfo()) }

const { metafile } = await build({
  ...common,
  metafile: true,
  entryPoints,
  outdir: 'dist',
  splitting: true,
  format: 'esm',
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
  define: buildTime,
  banner: { js: "import { createRequire as skiffCreateRequire } from 'node:module'; const require = skiffCreateRequire(import.meta.url);" },
})
await mergeChunks(root, metafile.outputs, { ...common, format: 'esm' })
await buildForRequire()
await buildPage(root)
inAscii(`${root}dist/`)
fs.writeFileSync(`${root}dist/descriptions.json`, JSON.stringify(await collectDescriptions()))
writeDeclarations(root)
console.log('built dist/')

/**
 * One bundle for all libraries, so that they share their classes (`instanceof` and caches agree); each library of it is evaluated when it is first
 * required, so that an operator does not run the API server's modules.
 */
async function buildForRequire() {
  const loaders = Object.entries(libraries).map(([name, file]) => `exports.${name} = () => require('./${file}')`)
  await build({
    ...common,
    stdin: { contents: loaders.join('\n'), resolveDir: root, sourcefile: 'libraries.js' },
    outfile: 'dist/libraries.cjs',
    external: [...common.external, 'tsx/esm/api'],
    format: 'cjs',
    define: { ...buildTime, 'import.meta.url': 'skiffModuleUrl', 'import.meta.resolve': 'require.resolve' },
    banner: { js: "const skiffModuleUrl = require('node:url').pathToFileURL(__filename).href;" },
  })
  for (const name of Object.keys(libraries)) fs.writeFileSync(`${root}dist/${name}.cjs`, `module.exports = require('./libraries.cjs').${name}()\n`)
}

/**
 * The commit, and when it was made: the same sources give the same bundle. Sources that differ from the commit are dated now, unless
 * SOURCE_DATE_EPOCH says when.
 */
function buildInfo() {
  const [gitCommit, seconds] = git('log', '-1', '--format=%H %ct').split(' ')
  const gitTreeState = !gitCommit ? '' : git('status', '--porcelain', '--untracked-files=no') === '' ? 'clean' : 'dirty'
  const epoch = process.env.SOURCE_DATE_EPOCH ?? (gitTreeState === 'clean' ? seconds : undefined)
  const built = epoch === undefined ? new Date() : new Date(Number(epoch) * 1000)
  return { gitCommit, gitTreeState, buildDate: built.toISOString().replace(/\.\d+Z$/, 'Z') }
}

/** Empty where there is no repository, such as in an archive of the sources. */
function git(...args) {
  try {
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return ''
  }
}

/** V8 keeps a source with any character beyond Latin-1 at two bytes each, and reads it slower; comments and regular expressions have some. */
function inAscii(dir) {
  for (const name of fs.readdirSync(dir).filter((file) => /\.[cm]js$/.test(file))) {
    const source = fs.readFileSync(dir + name, 'utf8')
    const escaped = source.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    if (escaped !== source) fs.writeFileSync(dir + name, escaped)
  }
}
