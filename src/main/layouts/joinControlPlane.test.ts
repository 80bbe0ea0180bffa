import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { exitCodes } from '#cli/exitCodes'
import { writeControlPlane } from '../join/controlPlaneFiles.ts'
import { controlPlaneFiles } from '../join/controlPlanePaths.ts'
import { createAuthority, createSigningKey } from '../pki/certificates.ts'
import { runControlPlane } from './joinControlPlane.ts'

test('HA-01 a control plane that a signal ends before its API is ready ends as interrupted', async () => {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-joined-'))
  const files = controlPlaneFiles(directory)
  const authority = (name: string) => createAuthority(name, Date.now(), 3650)
  const shared = {
    ca: await authority('kubernetes'),
    frontProxyCa: await authority('front-proxy-ca'),
    serviceAccountKey: await createSigningKey(),
    etcd: { ca: '', cert: '', key: '' },
  }
  const plan = { port: 6443, endpoint: 'api.example.com:6443', servingNames: ['localhost'], apiServer: [], controllerManager: [], scheduler: [] }
  try {
    await writeControlPlane(files, shared, plan)
    assert.equal(await runControlPlane(files, '0', AbortSignal.abort()), exitCodes.interrupted)
  } finally {
    await fs.rm(directory, { recursive: true })
  }
})
