/** The module hooks of typescript.mjs: imports with `.ts` in their path, `#room/…` and the package's own entries are resolved without a search. */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import esbuild from 'esbuild'

const root = path.resolve(import.meta.dirname ?? fileURLToPath(new URL('.', import.meta.url)), '..')
/** The oldest Node.js that Skiff supports, so that every version runs the same code. */
const target = 'node20'
const cache = path.join(root, 'node_modules/.cache/typescript')
const { paths } = JSON.parse(fs.readFileSync(path.join(root, 'tsconfig.json'), 'utf8')).compilerOptions
fs.mkdirSync(cache, { recursive: true })

const module = (url) => ({ url, format: 'module', shortCircuit: true })
const inRoot = (file) => module(pathToFileURL(path.join(root, file)).href)

export async function resolve(specifier, context, next) {
  if (context.parentURL?.includes('/node_modules/')) return next(specifier, context)
  if (specifier.startsWith('#')) return inRoot(`src/${specifier.slice(1)}.ts`)
  if (Object.hasOwn(paths, specifier)) return inRoot(paths[specifier][0])
  if (specifier.startsWith('.') && specifier.endsWith('.ts')) return module(new URL(specifier, context.parentURL).href)
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: transpiled(fileURLToPath(url)), shortCircuit: true }
}

/** The key holds the file's name, which its source map tells, and its content. Processes that start together write a file of their own each. */
function transpiled(file) {
  const text = fs.readFileSync(file, 'utf8')
  const key = createHash('sha256').update(`${esbuild.version}\0${target}\0${file}\0${text}`).digest('hex')
  const kept = path.join(cache, `${key}.mjs`)
  if (fs.existsSync(kept)) return fs.readFileSync(kept)
  const { code } = esbuild.transformSync(text, {
    loader: 'ts',
    format: 'esm',
    target,
    sourcefile: file,
    sourcemap: 'inline',
    sourcesContent: false,
  })
  const partial = `${kept}.${process.pid}`
  fs.writeFileSync(partial, code)
  fs.renameSync(partial, kept)
  return code
}
