#!/usr/bin/env node
/**
 * Runs a command with another version of Node.js, whose binary comes from the npm registry: the package `node-<platform>-<architecture>` holds it, and no
 * install script runs. Binaries are kept in SKIFF_NODE_CACHE, by default `skiff-node` in the user's cache directory.
 *
 *   node scripts/otherNode.mjs VERSION COMMAND [ARGUMENT…]
 *   VERSION   a line (24) for its newest release, or a release (24.21.0); without a registry the newest of the line that is kept
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const [version, command, ...args] = process.argv.slice(2)
if (!/^\d+(\.\d+\.\d+)?$/.test(version ?? '') || command === undefined) {
  console.error('usage: node scripts/otherNode.mjs VERSION COMMAND [ARGUMENT…], with a VERSION such as 24 or 24.21.0')
  process.exit(2)
}
const packageName = `node-${process.platform}-${process.arch}`
const cache = process.env.SKIFF_NODE_CACHE ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'skiff-node')
/** The file next to the binary with the checksum of the fetched binary. */
const sumName = 'node.sha256'
const npm = (...words) => execFileSync('npm', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const directory = provide(releaseOf(version))
const run = spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, PATH: `${directory}${path.delimiter}${process.env.PATH}` } })
if (run.error) console.error(run.error.message)
process.exit(run.status ?? 1)

/** The exact release. */
function releaseOf(wanted) {
  if (wanted.includes('.')) return wanted
  const newest = (releases) =>
    releases
      .filter((release) => release.startsWith(`${wanted}.`) && /^[\d.]+$/.test(release))
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .at(-1)
  try {
    const found = newest(JSON.parse(npm('view', packageName, 'versions', '--json')))
    if (found !== undefined) return found
  } catch {
    // No registry can be reached: one that is kept will do.
  }
  const kept = newest(fs.existsSync(cache) ? fs.readdirSync(cache) : [])
  if (kept !== undefined) return kept
  console.error(`${packageName}: the registry has no release of Node.js ${wanted}`)
  process.exit(6)
}

/** The directory with the binary of that release. One that is not kept, or is damaged, is fetched. */
function provide(release) {
  const kept = path.join(cache, release)
  if (fs.existsSync(kept)) {
    const fault = faultOf(kept, release)
    if (fault === undefined) return kept
    console.log(`Node.js ${release}: ${kept} is damaged (${fault}); fetching it again`)
    fs.rmSync(kept, { recursive: true })
  }
  fs.mkdirSync(cache, { recursive: true })
  const fresh = fs.mkdtempSync(path.join(cache, '.fetching-'))
  try {
    fetchInto(fresh, release)
    // Another process may have fetched it meanwhile.
    if (!fs.existsSync(kept)) fs.renameSync(fresh, kept)
    return kept
  } catch (error) {
    console.error(`Node.js ${release}: ${packageName} could not be fetched: ${reasonOf(error)}`)
    process.exitCode = 6
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true })
  }
  process.exit()
}

/** @throws Error when the registry does not answer, or what it sent is no such binary */
function fetchInto(directory, release) {
  console.log(`Node.js ${release}: fetching ${packageName} into ${cache}`)
  const tarball = npm('pack', `${packageName}@${release}`, '--silent', '--ignore-scripts', '--pack-destination', directory).split('\n').at(-1)
  execFileSync('tar', ['xzf', path.join(directory, tarball), '-C', directory, '--strip-components=2', 'package/bin/node'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  fs.rmSync(path.join(directory, tarball))
  fs.writeFileSync(path.join(directory, sumName), sumOf(directory))
  const fault = faultOf(directory, release)
  if (fault !== undefined) throw new Error(`the package holds another binary (${fault})`)
}

/** Why the binary in a directory cannot be used; undefined: it can. */
function faultOf(directory, release) {
  const binary = path.join(directory, 'node')
  if (!fs.existsSync(binary)) return 'there is no binary'
  const sumFile = path.join(directory, sumName)
  if (fs.existsSync(sumFile) && fs.readFileSync(sumFile, 'utf8') !== sumOf(directory)) return 'its checksum has changed'
  const { error, status, signal, stdout } = spawnSync(binary, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  if (error) return error.message
  if (status !== 0) return `it ends with ${signal ?? status}`
  return stdout.trim() === `v${release}` ? undefined : `it says ${JSON.stringify(stdout.trim().slice(0, 40))}`
}

function sumOf(directory) {
  return createHash('sha256')
    .update(fs.readFileSync(path.join(directory, 'node')))
    .digest('hex')
}

/** The last line that a program wrote, which names the reason. */
function reasonOf(error) {
  const written = String(error.stderr ?? '').trim()
  return written.split('\n').at(-1) || error.message
}
