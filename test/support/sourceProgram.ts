/** Programs in TypeScript that tests start: as bundles, where the test runner has made them, which start in a fraction of the time. */
import { type ChildProcess, fork } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')

/**
 * @param first source files that the program's process imports before
 * @returns node's arguments that run the source file
 */
export function sourceProgram(file: string, first: readonly string[] = []): string[] {
  const bundles = [...first, file].map(bundleOf)
  const imports = (files: readonly string[]) => files.flatMap((each) => ['--import', each])
  // A bundle and a source do not share their modules.
  if (bundles.every((bundle) => fs.existsSync(bundle))) return [...imports(bundles.slice(0, -1)), ...bundles.slice(-1)]
  return [...imports(['tsx', ...first]), file]
}

/** Where the test runner puts a file's bundle. */
function bundleOf(file: string): string {
  return path.join(process.env.SKIFF_TEST_BUNDLES ?? root, path.relative(root, file).replace(/\.ts$/, '.mjs'))
}

/** Starts a source file as `fork` of node:child_process does, with a channel for messages. */
export function forkSource(file: string, args: readonly string[] = []): ChildProcess {
  const words = sourceProgram(file)
  return fork(words.at(-1) ?? file, args, { execArgv: words.slice(0, -1) })
}
