/**
 * What a control plane keeps on disk is closed to other users, whatever the umask, and though its directory was there before and open to all. Started as
 * processes, with an umask of zero.
 */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { obstacleToApiServer } from './support/apiServerProcess.ts'
import { skiffBin } from './support/localCluster.ts'

/** Everything below the directory, itself included, that others may enter, read or write. Links and certificates without keys are no secrets. */
function openToOthers(directory: string): string[] {
  const stats = fs.lstatSync(directory)
  const isPublic = stats.isSymbolicLink() || directory.endsWith('.crt')
  const own = (stats.mode & 0o077) === 0 || isPublic ? [] : [`${directory} ${(stats.mode & 0o7777).toString(8)}`]
  return stats.isDirectory() ? [...own, ...fs.readdirSync(directory).flatMap((name) => openToOthers(path.join(directory, name)))] : own
}

function withOpenDirectory(run: (directory: string) => Promise<void>): () => Promise<void> {
  return async () => {
    const top = fs.mkdtempSync(path.join(os.tmpdir(), 'skiff-modes-'))
    try {
      const directory = path.join(top, 'data')
      fs.mkdirSync(directory)
      fs.chmodSync(directory, 0o755)
      await run(directory)
    } finally {
      fs.rmSync(top, { recursive: true, force: true })
    }
  }
}

const inShell = (words: readonly string[]) => ['-c', 'umask 0; exec "$@"', 'sh', process.execPath, skiffBin, ...words]

test(
  'ETC-10 the data directory of a lone API server is closed to others, it was there before',
  { skip: obstacleToApiServer },
  withOpenDirectory(async (directory) => {
    fs.mkdirSync(path.join(directory, 'pki'), { mode: 0o700 })
    for (const name of ['data.mdb', 'data.mdb-lock', 'pki/sa.key', 'pki/ca.key']) {
      fs.writeFileSync(path.join(directory, name), '')
      fs.chmodSync(path.join(directory, name), 0o644)
    }
    const child = spawn(
      '/bin/sh',
      inShell(['apiserver', '--secure-port=0', `--data-dir=${directory}`, '--audit-log-path', path.join(directory, 'audit.log')]),
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    try {
      let text = ''
      for await (const chunk of child.stderr) {
        text += chunk
        if (text.includes('Serving securely')) break
      }
      assert.match(text, /Serving securely/)
      assert.deepEqual(openToOthers(directory), [])
      assert.equal(fs.statSync(path.join(directory, 'data.mdb')).mode & 0o777, 0o600)
    } finally {
      const ended = child.exitCode === null ? once(child, 'exit') : Promise.resolve()
      child.kill('SIGTERM')
      await ended
    }
  }),
)

test(
  'ETC-10 the directory of a cluster is closed to others, it was there before',
  { skip: obstacleToApiServer },
  withOpenDirectory(async (home) => {
    const cluster = path.join(home, 'clusters', 'modes')
    fs.mkdirSync(cluster, { recursive: true })
    const env = { ...process.env, SKIFF_HOME: home, HOME: home, KUBECONFIG: path.join(home, 'kubeconfig') }
    const skiff = (...words: string[]) => execFileSync('/bin/sh', inShell(words), { env, stdio: 'pipe' })
    try {
      skiff('up', 'modes', '--runtime', 'simulated', '--simulated-nodes', '1')
      assert.deepEqual(openToOthers(cluster), [])
      assert.equal(fs.statSync(env.KUBECONFIG).mode & 0o777, 0o600)
    } finally {
      skiff('delete', 'modes')
    }
  }),
)
