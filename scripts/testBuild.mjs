/**
 * Bundles test files and the programs that tests start, with what they share in common chunks: a process that imports 700 files of TypeScript one by one
 * spends more processor time on loading them than on most tests.
 */
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import esbuild from 'esbuild'

/** Programs that tests start as processes of their own, by test/support/sourceProgram.ts. */
const programs = [
  'test/integration/aggregation/sampleServer.ts',
  'test/robustness/attacks/attackServer.ts',
  'test/robustness/attacks/bystander.ts',
  'test/robustness/budget/budgetCluster.ts',
  'test/robustness/fuzz/fuzzServer.ts',
  'test/robustness/poison/clusterProcess.ts',
  'test/robustness/snapshotKillWorker.ts',
  'test/robustness/storeFullWriter.ts',
  'test/robustness/storeKillWriter.ts',
  'test/support/cannedServerProcess.ts',
  'test/support/jwtSignerProcess.ts',
  'test/support/kmsPluginProcess.ts',
  'test/support/nodePluginProcess.ts',
  'test/support/overEtcd.ts',
]

const isAlive = (pid) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Makes a folder for this process below node_modules, where the packages are found, and removes those of runs that were killed. */
function makeFolder(root) {
  const all = path.join(root, 'node_modules/.cache/tests')
  fs.mkdirSync(all, { recursive: true })
  for (const pid of fs.readdirSync(all)) if (!isAlive(Number(pid))) fs.rmSync(path.join(all, pid), { recursive: true, force: true })
  return path.join(all, `${process.pid}`)
}

/** A bundled file still finds the files next to its source. */
function sourcePlaces(root) {
  const { paths } = JSON.parse(fs.readFileSync(path.join(root, 'tsconfig.json'), 'utf8')).compilerOptions
  return {
    name: 'source places',
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^skiff-kubernetes\// }, ({ path: specifier }) =>
        Object.hasOwn(paths, specifier) ? { path: path.join(root, paths[specifier][0]) } : undefined,
      )
      onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
        const text = await fs.promises.readFile(file, 'utf8')
        if (!text.includes('import.meta.')) return undefined
        const define = { 'import.meta.url': JSON.stringify(pathToFileURL(file).href), 'import.meta.dirname': JSON.stringify(path.dirname(file)) }
        const { code } = await esbuild.transform(text, { loader: 'ts', target: 'esnext', define, sourcemap: 'inline', sourcefile: file })
        return { contents: code, loader: 'js' }
      })
    },
  }
}

/** @returns the folder with the bundles, each at its source's path with the ending .mjs; it lasts as long as this process */
export async function buildTests(root, files) {
  const outdir = makeFolder(root)
  process.on('exit', () => fs.rmSync(outdir, { recursive: true, force: true }))
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: [...new Set([...files, ...programs])],
    outbase: root,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    // The oldest Node.js that Skiff supports, so that every version runs the same code.
    target: 'node20',
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
    logLevel: 'error',
    plugins: [sourcePlaces(root)],
  })
  return outdir
}

/** @returns the bundle of a source file, both relative to their folders */
export const bundleOf = (file) => file.replace(/\.ts$/, '.mjs')
