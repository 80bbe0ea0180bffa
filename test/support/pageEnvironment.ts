/** Where the commands of pages run: `skiff` and kubectl on the PATH, and a home of their own. */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { newestPair, preferPackagedProgram } from './packagedPrograms.ts'

const root = path.resolve(import.meta.dirname, '../..')

const hasKubectl = preferPackagedProgram(newestPair, 'kubectl')

/** Why the commands cannot run here; false when they can. kubectl's texts differ between its versions. */
export const withoutNewestKubectl: string | false = hasKubectl ? false : 'needs kubectl of the npm package, which has one for Linux on x64'

export function pageEnvironment(directory: string): NodeJS.ProcessEnv {
  const programs = [path.join(root, 'bin'), process.env.PATH].join(path.delimiter)
  return { ...process.env, PATH: programs, SKIFF_HOME: path.join(directory, 'home'), KUBECONFIG: path.join(directory, 'kubeconfig'), HOME: directory }
}

/** Deletes all clusters of the environment. */
export async function removeClusters(env: NodeJS.ProcessEnv): Promise<void> {
  await promisify(execFile)(process.execPath, [path.join(root, 'bin/skiff'), 'delete', '--all'], { env })
}
