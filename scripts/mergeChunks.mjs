/**
 * Joins small chunks of the build that the same programs load. esbuild makes a chunk for each set of dynamic imports that reach a module, some
 * hundred of them, and Node needs about a millisecond for each file of a program's start.
 *
 * A chunk imports only chunks that at least the same programs load, so joined files import each other in one direction, as the chunks did.
 */
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'

/** Their starts are to be short. A start loads all that its file imports, statically. */
export const programs = [
  'src/main/layouts/server.ts',
  'src/main/layouts/serverComponents.ts',
  'src/main/layouts/nodeAgent.ts',
  'src/main/layouts/kubelet.ts',
  'src/main/commandLine.ts',
  'src/main/package/client.ts',
  'src/testing/package.ts',
]
/** Many of these run, or run often: they load nothing that they do not need. */
const small = [
  'src/main/skiff.ts',
  'src/main/layouts/dialerProcess.ts',
  'src/main/component/kubelet/networkProbeProcess.ts',
  'src/main/layouts/cniPluginProcess.ts',
  'src/main/layouts/forwarderProcess.ts',
  'src/main/layouts/balancer.ts',
  'src/main/supervisor/supervisor.ts',
  'src/apiserver/yaml/worker.ts',
  'src/main/etcd/passwordWorker.ts',
]
/** Larger chunks stay as they are: for a program that is not in the list above, and needs one chunk of a joined file, the others are too much. */
const mostBytes = 40_000

/** @param outputs of esbuild's metafile, whose files are on the disk */
export async function mergeChunks(root, outputs, options) {
  const groups = groupsOf(outputs)
  /** By the file name of a chunk: where its exports are now. */
  const moved = new Map()
  for (const chunks of groups) {
    const name = nameOf(chunks)
    for (const [index, file] of chunks.entries()) moved.set(path.basename(file), { file: name, prefix: `c${index}_` })
  }
  for (const chunks of groups) await join(path.join(root, 'dist', nameOf(chunks)), chunks, { root, outputs, moved, options })
  for (const file of groups.flat()) for (const suffix of ['', '.map']) fs.rmSync(path.join(root, file + suffix))
  const left = fs.readdirSync(path.join(root, 'dist')).filter((name) => name.endsWith('.mjs'))
  for (const name of left) importFromJoined(path.join(root, 'dist', name), moved)
}

/** The names of the chunks have hashes of their content. */
const nameOf = (chunks) => `joined-${createHash('sha256').update(chunks.join()).digest('hex').slice(0, 8).toUpperCase()}.mjs`

/** Chunks without an entry point of their own, by the programs that load them; single ones stay. */
export function groupsOf(outputs) {
  const files = Object.keys(outputs)
  const loadedBy = (entryPoint) => {
    const entry = files.find((file) => outputs[file].entryPoint === entryPoint)
    if (entry === undefined) throw new Error(`${entryPoint} is no entry point of the build`)
    const loaded = new Set([entry])
    for (const file of loaded) for (const one of outputs[file].imports) if (one.kind === 'import-statement' && !one.external) loaded.add(one.path)
    return loaded
  }
  const excluded = new Set(small.flatMap((entryPoint) => [...loadedBy(entryPoint)]))
  const users = new Map()
  programs.forEach((program, at) => {
    for (const file of loadedBy(program)) users.set(file, `${users.get(file) ?? ''}${at}`)
  })
  const groups = new Map()
  for (const [file, key] of users) {
    const { entryPoint, bytes } = outputs[file]
    if (entryPoint !== undefined || excluded.has(file) || bytes > mostBytes) continue
    groups.set(key, [...(groups.get(key) ?? []), file])
  }
  return [...groups.values()].filter((chunks) => chunks.length > 1).map((chunks) => chunks.sort())
}

/** One file with the code of the chunks. Its exports have a prefix for each chunk, since two chunks may have the same names. */
async function join(outfile, chunks, { root, outputs, moved, options }) {
  const own = new Map(chunks.map((file) => [path.basename(file), path.join(root, file)]))
  const lines = chunks.map((file) => {
    const { prefix } = moved.get(path.basename(file))
    const names = outputs[file].exports.map((name) => `${name} as ${prefix}${name}`)
    return `export { ${names.join(', ')} } from './${path.basename(file)}'`
  })
  const keepOthersOutside = (pass) =>
    pass.onResolve({ filter: /.*/ }, ({ path: name, kind }) => {
      if (kind === 'entry-point') return undefined
      const file = own.get(name.replace(/^\.\//, ''))
      return file && kind === 'import-statement' ? { path: file } : { path: name, external: true }
    })
  await build({
    ...options,
    stdin: { contents: lines.join('\n'), resolveDir: path.join(root, 'dist'), sourcefile: 'joined.mjs' },
    outfile,
    splitting: false,
    treeShaking: false,
    plugins: [{ name: 'keepOthersOutside', setup: keepOthersOutside }],
  })
}

/** Line by line, since source maps count lines. */
function importFromJoined(file, moved) {
  const source = fs.readFileSync(file, 'utf8')
  const changed = source
    .replace(/^import \{([^}]*)\} from "\.\/([^"]+)";$/gm, (statement, names, from) => {
      const target = moved.get(from)
      if (!target) return statement
      const renamed = names.replace(
        /^(\s*)(\w+|\$\w*)(?: as (\S+?))?(,?)$/gm,
        (_, space, name, as, comma) => `${space}${target.prefix}${name} as ${as ?? name}${comma}`,
      )
      return `import {${renamed}} from "./${target.file}";`
    })
    .replace(/^import "\.\/([^"]+)";$/gm, (statement, from) => (moved.has(from) ? `import "./${moved.get(from).file}";` : statement))
  if (changed !== source) fs.writeFileSync(file, changed)
}
