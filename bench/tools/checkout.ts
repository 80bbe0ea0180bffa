/** Another commit of this repository, built in a folder of its own, so that both builds can be measured side by side. */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

const root = path.resolve(import.meta.dirname, '../..')
const execute = promisify(execFile)

/** Runs `use` with the path of a built checkout of `commit`; the checkout is removed afterwards. @throws Error when the commit is unknown or does not build */
export async function withCheckout<T>(parent: string, commit: string, use: (checkout: string) => Promise<T>): Promise<T> {
  const checkout = path.join(parent, 'checkout')
  await execute('git', ['worktree', 'add', '--quiet', '--detach', checkout, commit], { cwd: root })
  try {
    copyPackages(checkout)
    await execute('make', ['build'], { cwd: checkout, maxBuffer: 1 << 24 })
    return await use(checkout)
  } finally {
    await execute('git', ['worktree', 'remove', '--force', checkout], { cwd: root })
  }
}

/** The same lock file means the same packages; `make build` installs them when they are missing. */
function copyPackages(checkout: string): void {
  const lock = (folder: string) => readFileSync(path.join(folder, 'package-lock.json'), 'utf8')
  const packages = path.join(root, 'node_modules')
  if (!existsSync(packages) || lock(root) !== lock(checkout)) return
  cpSync(packages, path.join(checkout, 'node_modules'), { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
}
