/** The files of a control plane that joins: who may read them, what they say, and over which files none is written. */
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { CommandError } from '#cli/exitCodes'
import { createAuthority, createSigningKey } from '../pki/certificates.ts'
import { ensureControlPlane, readPlan, refuseForeignNode, refuseJoined, writeControlPlane } from './controlPlaneFiles.ts'
import { controlPlaneFiles } from './controlPlanePaths.ts'

const nowMs = Date.now()
const [ca, frontProxyCa, foreign] = await Promise.all(['kubernetes', 'front-proxy-ca', 'kubernetes'].map((name) => createAuthority(name, nowMs, 3650)))
assert.ok(ca && frontProxyCa && foreign)
const shared = { ca, frontProxyCa, serviceAccountKey: await createSigningKey(), etcd: { ca: foreign.cert, ...foreign } }
const plan = { port: 6443, endpoint: 'api.example.com:6443', servingNames: ['localhost', '127.0.0.1'], apiServer: [], controllerManager: [], scheduler: [] }
const belongs = (error: CommandError) => error.exit === 'alreadyExists' && /belongs to a cluster already/.test(error.message)

async function inDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-control-plane-'))
  await work(directory).finally(() => fs.rm(directory, { recursive: true }))
}

test('HA-01 every private key and kubeconfig of a control plane that joins is for its owner alone, and the mask does not matter', () =>
  inDirectory(async (directory) => {
    const mask = process.umask(0)
    try {
      const files = controlPlaneFiles(directory)
      await writeControlPlane(files, shared, plan)
      await ensureControlPlane(files, plan, nowMs)
      assert.equal((await fs.stat(files.pki)).mode & 0o777, 0o700)
      const keys = (await fs.readdir(files.pki)).filter((name) => name.endsWith('.key')).map((name) => path.join(files.pki, name))
      assert.ok(keys.length >= 10, `${keys.length}`)
      for (const file of [...keys, files.plan, files.admin, files.controllerManager, files.scheduler])
        assert.equal((await fs.stat(file)).mode & 0o777, 0o600, file)
      assert.equal(await fs.readFile(path.join(files.pki, 'ca.key'), 'utf8'), ca.key)
      assert.deepEqual(await readPlan(files), plan)
      assert.match(await fs.readFile(files.admin, 'utf8'), /"server": "https:\/\/api\.example\.com:6443"/)
      assert.match(await fs.readFile(files.scheduler, 'utf8'), /"server": "https:\/\/127\.0\.0\.1:6443"/)
    } finally {
      process.umask(mask)
    }
  }))

test('HA-01 a machine that is a control plane, or has keys of a cluster, is not joined over them', () =>
  inDirectory(async (directory) => {
    const files = controlPlaneFiles(directory)
    await refuseJoined(files, directory)
    await fs.mkdir(files.pki)
    await fs.writeFile(path.join(files.pki, 'sa.key'), '')
    await assert.rejects(refuseJoined(files, directory), belongs)
    await fs.writeFile(files.plan, '{}')
    await assert.rejects(
      refuseJoined(files, directory),
      (error: CommandError) => /is a control plane already/.test(error.message) && error.hint?.includes(directory) === true,
    )
  }))

test('HA-01 a node of the same cluster may become a control plane, a node of another one not', () =>
  inDirectory(async (directory) => {
    const files = controlPlaneFiles(directory)
    await refuseForeignNode(files, ca.cert)
    await fs.mkdir(files.pki)
    await fs.writeFile(path.join(files.pki, 'ca.crt'), ca.cert)
    await refuseForeignNode(files, `${foreign.cert}${ca.cert}`)
    await assert.rejects(refuseForeignNode(files, foreign.cert), belongs)
  }))
