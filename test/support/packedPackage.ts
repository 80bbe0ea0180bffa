/**
 * The package as its users get it: packed from the checkout's build, and installed by npm, with its dependencies, in a folder of its own. The compilers
 * and test runners that it is tried with are pinned in `test/integration/package/tools`.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')
const tools = path.join(root, 'test/integration/package/tools')
export const packageName = 'skiff-kubernetes'

/** npm takes what it has fetched before from its cache, and asks the registry for the rest. */
const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']

export function npm(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv = process.env): string {
  return execFileSync('npm', [...args], { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** The cache of this user's npm, for commands that run with another HOME. */
export const npmCache = () => npm(['config', 'get', 'cache'], root).trim()

/** Packs what the last build wrote, and returns the tarball's path in `folder`. */
export function packInto(folder: string): string {
  assert.ok(fs.existsSync(path.join(root, 'dist/client.mjs')), 'dist/ is missing: run make build')
  const printed = npm(['pack', '--silent', '--ignore-scripts', '--pack-destination', folder], root)
  return path.join(folder, printed.trim().split('\n').at(-1) ?? '')
}

export interface InstalledPackage {
  readonly folder: string
  readonly tarball: string
  /** The installed package. */
  readonly installed: string
  write(name: string, content: string): void
  remove(): void
}

/** `withTools`: the pinned compilers and test runners are installed in the same folder. */
export function installPackage({ withTools = false } = {}): InstalledPackage {
  const folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-package-')))
  const tarball = packInto(folder)
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }')
  npm(['install', ...quietly, tarball], folder)
  // Linked one by one: npm would remove what it has not installed itself.
  if (withTools) for (const [name, target] of installedTools()) linkMissing(path.join(folder, 'node_modules', name), target)
  return {
    folder,
    tarball,
    installed: path.join(folder, 'node_modules', packageName),
    write(name, content) {
      fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
      fs.writeFileSync(path.join(folder, name), content)
    },
    remove: () => fs.rmSync(folder, { recursive: true, force: true }),
  }
}

/** Installs the tools once for each version of their lock file, and lists name and path of each package. */
function installedTools(): [name: string, target: string][] {
  const lock = fs.readFileSync(path.join(tools, 'package-lock.json'))
  const kept = path.join(root, 'node_modules/.cache/skiff-tools', createHash('sha256').update(lock).digest('hex').slice(0, 16))
  if (!fs.existsSync(kept)) {
    fs.mkdirSync(path.dirname(kept), { recursive: true })
    const fresh = fs.mkdtempSync(`${kept}-`)
    for (const name of ['package.json', 'package-lock.json']) fs.copyFileSync(path.join(tools, name), path.join(fresh, name))
    npm(['ci', ...quietly], fresh)
    try {
      fs.renameSync(fresh, kept)
    } catch {
      // Another process was faster.
      fs.rmSync(fresh, { recursive: true, force: true })
    }
  }
  const modules = path.join(kept, 'node_modules')
  return packageNames(modules).map((name) => [name, path.join(modules, name)])
}

function packageNames(modules: string): string[] {
  const names = fs.readdirSync(modules).filter((name) => !name.startsWith('.'))
  return names.flatMap((name) => (name.startsWith('@') ? fs.readdirSync(path.join(modules, name)).map((inner) => `${name}/${inner}`) : [name]))
}

function linkMissing(link: string, target: string): void {
  if (fs.existsSync(link)) return
  fs.mkdirSync(path.dirname(link), { recursive: true })
  fs.symlinkSync(target, link)
}
