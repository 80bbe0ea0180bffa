/**
 * Container images whose files come from Debian's packages (tests only): `apt-get download` fetches the packages with what they depend on, into a cache of the user's, and
 * nothing is installed on this machine.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { ociTar, type TarEntry } from '#kubelet/images/ociTar'

const execute = promisify(execFile)
const maxBuffer = 1 << 26

export interface DebianImage {
  readonly name: string
  readonly packages: readonly string[]
  /** Packages of these names are left out, with what only they depend on. */
  readonly without: RegExp
  /** Folders of the packages that the programs do not read. */
  readonly prune: readonly string[]
  readonly command: readonly string[]
  readonly environment: readonly string[]
  readonly user: string
  /** Added to the files of the packages. */
  readonly files: readonly TarEntry[]
}

/** Why the packages cannot be had on this machine. */
export class PackagesMissing extends Error {}

const dependsFlags = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map((kind) => `--no-${kind}`)
const cache = path.join(os.homedir(), '.cache/skiff-suites/debian')
const asRoot = ['-o', 'APT::Sandbox::User=root']

/** A tar that `skiff image load` takes, kept in the cache until packages or `image` change. @throws PackagesMissing */
export async function debianImage(image: DebianImage): Promise<string> {
  const packages = await fetchPackages(image)
  const key = JSON.stringify([image, String(image.without), packages, image.files.map(({ data = [] }) => [...data])])
  const file = path.join(cache, `image-${createHash('sha256').update(key).digest('hex')}.tar`)
  if (fs.existsSync(file)) return file
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-debian-'))
  try {
    await writeImage(root, packages, image, file)
    return file
  } finally {
    fs.rmSync(root, { recursive: true, force: true })
  }
}

async function writeImage(root: string, packages: readonly string[], image: DebianImage, file: string): Promise<void> {
  for (const file of packages) await execute('dpkg-deb', ['-x', file, root], { maxBuffer })
  for (const unused of image.prune) fs.rmSync(path.join(root, unused), { recursive: true, force: true })
  const { name, command, environment, user } = image
  const unfinished = `${file}.${process.pid}`
  fs.writeFileSync(unfinished, ociTar({ names: [name], command, environment, user, files: [...filesBelow(root), ...image.files] }))
  fs.renameSync(unfinished, file)
}

async function fetchPackages(image: DebianImage): Promise<string[]> {
  fs.mkdirSync(cache, { recursive: true })
  try {
    return await download(image, asRoot)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new PackagesMissing('needs apt-get, apt-cache and dpkg-deb')
  }
  // The lists of this machine are missing or older than the archive: a copy of our own changes nothing for the machine.
  const lists = path.join(cache, 'lists')
  fs.mkdirSync(path.join(lists, 'partial'), { recursive: true })
  const own = [...asRoot, '-o', `Dir::State::lists=${lists}`, '-o', 'Dir::Cache::pkgcache=', '-o', 'Dir::Cache::srcpkgcache=']
  try {
    await execute('apt-get', [...own, '-q', 'update'], { maxBuffer })
    return await download(image, own)
  } catch (error) {
    throw new PackagesMissing(
      `Debian's packages ${image.packages.join(' and ')} cannot be had: ${lastLine((error as { stderr?: string }).stderr ?? String(error))}`,
    )
  }
}

const lastLine = (text: string) => text.trim().split('\n').at(-1) ?? ''

async function download({ packages, without }: DebianImage, options: readonly string[]): Promise<string[]> {
  const names = await closure(packages, without, options)
  const { stdout } = await execute('apt-get', [...options, '--print-uris', 'download', ...names], { cwd: os.tmpdir(), maxBuffer })
  const files = [...stdout.matchAll(/^'\S+' (\S+) (\d+) /gm)].map(([, name = '', bytes]) => ({ file: path.join(cache, name), bytes: Number(bytes) }))
  const isThere = ({ file, bytes }: (typeof files)[number]) => fs.existsSync(file) && fs.statSync(file).size === bytes
  if (!files.every(isThere)) await execute('apt-get', [...options, '-q', 'download', ...names], { cwd: cache, maxBuffer })
  return files.map(({ file }) => file).sort()
}

async function closure(packages: readonly string[], without: RegExp, options: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  for (let next = [...packages]; next.length > 0; ) {
    for (const name of next) found.add(name)
    const { stdout } = await execute('apt-cache', [...options, 'depends', ...dependsFlags, ...next], { maxBuffer })
    const named = [...stdout.matchAll(/^ [ |](?:Pre)?Depends: ([^<\s]+)$/gm)].map(([, name = '']) => name)
    next = [...new Set(named)].filter((name) => !without.test(name) && !found.has(name))
  }
  return [...found]
}

/** All files are root's, as in the packages. */
function filesBelow(root: string, below = ''): TarEntry[] {
  const entries = fs.readdirSync(path.join(root, below), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap((entry): TarEntry[] => {
    const at = path.join(below, entry.name)
    const real = path.join(root, at)
    if (entry.isSymbolicLink()) return [{ path: at, type: 'symlink', target: fs.readlinkSync(real) }]
    const mode = fs.statSync(real).mode & 0o7777
    if (entry.isDirectory()) return [{ path: `${at}/`, type: 'directory', mode }, ...filesBelow(root, at)]
    return entry.isFile() ? [{ path: at, type: 'file', mode, data: fs.readFileSync(real) }] : []
  })
}
