/** The second disk of the machine: what is built of this checkout, at the path that it has on the host, since bundled tests know it, and one entry a test file. */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

const here = import.meta.dirname
/** Room for what tests write into the checkout. */
const spareMiB = 512

/**
 * @param boots for each boot the names and bundles of its test files
 * @returns the file with the disk
 */
export function folderDisk({ work, root, bundles, boots, fileSeconds }) {
  const folder = path.join(work, 'folder')
  const copy = path.join(folder, 'root')
  fs.mkdirSync(copy, { recursive: true })
  for (const name of ['bin', 'dist', 'src', 'test', 'scripts', 'package.json']) copyTo(copy, root, name)
  for (const directory of packagesOf(root)) copyTo(copy, root, directory)
  copyTo(copy, root, path.relative(root, bundles))
  for (const [at, tests] of boots.entries()) writeEntries(path.join(folder, `boot-${at + 1}`), tests)
  fs.writeFileSync(path.join(folder, 'settings'), `ROOT='${root.replaceAll("'", `'\\''`)}'\nFILE_SECONDS=${fileSeconds}\n`)
  fs.copyFileSync(path.join(here, 'inside.sh'), path.join(folder, 'inside.sh'))
  fs.copyFileSync(fs.realpathSync(process.execPath), path.join(folder, 'node'))
  const disk = path.join(work, 'folder.img')
  const [kibibytes] = execFileSync('du', ['-sk', folder], { encoding: 'utf8' }).split('\t')
  fs.closeSync(fs.openSync(disk, 'w', 0o600))
  fs.truncateSync(disk, (Math.ceil((Number(kibibytes) * 1.3) / 1024) + spareMiB) * 2 ** 20)
  execFileSync('mkfs.ext4', ['-q', '-F', '-d', folder, disk])
  fs.rmSync(folder, { recursive: true })
  return disk
}

function copyTo(copy, root, name) {
  const filter = (source) => !/\/dist\/site$|\.map$|\/test\/suites$/.test(source)
  fs.cpSync(path.join(root, name), path.join(copy, name), { recursive: true, verbatimSymlinks: true, filter })
}

/** What users install, without what only development needs. */
function packagesOf(root) {
  const list = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root, encoding: 'utf8' })
  return list
    .split('\n')
    .filter((line) => line.startsWith(`${root}/`))
    .map((line) => path.relative(root, line))
}

function writeEntries(directory, tests) {
  fs.mkdirSync(directory)
  for (const [at, { name, bundle }] of tests.entries())
    fs.writeFileSync(path.join(directory, `${at + 1}-${name}.mjs`), `await import(${JSON.stringify(bundle)})\n`)
}
