#!/usr/bin/env node
/**
 * Runs test/machine on a stock Debian 12 that qemu emulates: cgroup v2, AppArmor, IPVS and a real boot, which a container or a machine with another kernel lacks.
 * The files of test/machine/firstBoot run one after the other; then the power is cut, and those of test/machine/secondBoot run on the same disks. The machine is
 * 10 to 20 times slower than this one: its tests wait by minutes, and none of them measures time.
 *
 *   node scripts/machine/run.mjs [files…]   files: some of those in test/machine; default: all
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { buildTests, bundleOf } from '../testBuild.mjs'
import { boot } from './boot.mjs'
import { folderDisk } from './folder.mjs'
import { machineImage } from './image.mjs'

const root = path.resolve(import.meta.dirname, '../..')
process.chdir(root)
const folders = ['firstBoot', 'secondBoot'].map((name) => `test/machine/${name}`)
const fileSeconds = 900
const bootSeconds = 2_400
const testsIn = (folder) =>
  fs
    .readdirSync(folder)
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
    .map((name) => path.join(folder, name))

for (const program of ['qemu-system-x86_64', 'qemu-img', 'debootstrap', 'mkfs.ext4', 'unshare']) {
  const found = ['/usr/sbin', '/usr/bin', '/sbin', '/bin'].some((directory) => fs.existsSync(path.join(directory, program)))
  if (found) continue
  console.error(`machine: ${program} is missing: run \`scripts/packages.sh --machine\` as root on Debian`)
  process.exit(6)
}
const chosen = process.argv.slice(2)
const unknown = chosen.find((file) => !folders.flatMap(testsIn).includes(file))
if (unknown !== undefined) {
  console.error(`${unknown}: must be one of ${folders.flatMap(testsIn).join(', ')}`)
  process.exit(2)
}

const files = folders.map((folder) => testsIn(folder).filter((file) => chosen.length === 0 || chosen.includes(file)))
const image = machineImage()
const work = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-machine-'))
process.once('exit', () => fs.rmSync(work, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
const bundles = await buildTests(root, files.flat())
const entries = files.map((some) => some.map((file) => ({ name: path.basename(file, '.test.ts'), bundle: path.join(bundles, bundleOf(file)) })))
const disks = [
  { file: overlay(image.disk), format: 'qcow2' },
  { file: folderDisk({ work, root, bundles, boots: entries, fileSeconds }), format: 'raw' },
]
let failures = 0
for (const [at, tests] of entries.entries()) if (tests.length > 0 || at === 0) failures += await runBoot(at + 1, tests)
console.log(failures === 0 ? '# machine: all files passed' : `# machine: ${failures} of the files failed`)
process.exit(failures === 0 ? 0 : 1)

/** The base image stays as it is. */
function overlay(base) {
  const file = path.join(work, 'system.qcow2')
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', base, file])
  return file
}

/** @returns how many files failed */
async function runBoot(number, tests) {
  console.log(`boot ${number}: ${tests.length} files`)
  const startedMs = performance.now()
  const codes = []
  const onLine = (line) => {
    const [, word, value] = /^MACHINE (file|code) (.*)$/.exec(line) ?? []
    if (word === 'code') codes.push(Number(value))
    console.log(word === 'code' ? `     exit code ${value} after ${Math.round((performance.now() - startedMs) / 1000)} s of this boot` : `     ${line}`)
  }
  const result = await boot({ image, disks, log: path.join(work, `console-${number}.log`), seconds: bootSeconds, onLine })
  if (!result.isOff) console.log(`FAIL boot ${number}: ${result.why}\n${result.console}`)
  const failed = codes.filter((code) => code !== 0).length + tests.length - codes.length
  return Math.max(failed, result.isOff ? 0 : 1)
}
