import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import type { Pod } from '#api/gen/types/core.v1'
import { notFound, StatusError } from '#api/machinery/status'
import { noLog } from '#base/log'
import { realClock } from '#testing/realClock'
import type { KubeletContext } from '../core/context.ts'
import type { PodWorkers } from '../pods/podWorkers.ts'
import { createStaticPods } from './staticPods.ts'

test('KUB-16 a static pod that the API refuses or the node fails on keeps no other one from running and from its mirror', { timeout: 30_000 }, async () => {
  const folder = await fs.mkdtemp(path.join(tmpdir(), 'skiff-static-'))
  const manifest = (name: string) => `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {containers: [{name: c, image: i}]}\n`
  for (const name of ['fails', 'refused', 'web']) await fs.writeFile(path.join(folder, `${name}.yaml`), manifest(name))
  await fs.writeFile(path.join(folder, 'a-broken.yaml'), '{')
  const stop = new AbortController()
  const created: (string | undefined)[] = []
  const started: (string | undefined)[] = []
  let markAll = () => {}
  const all = new Promise<void>((resolve) => {
    markAll = resolve
  })
  const client = {
    get: async () => ({ metadata: { uid: 'n' } }),
    create: async ({ metadata: { name } }: Pod) => {
      if (name?.startsWith('refused')) throw new StatusError('Forbidden', 'no')
      created.push(name)
      if (name?.startsWith('web')) markAll()
    },
    delete: async () => {
      throw notFound({ group: '', resource: 'pods' }, 'x')
    },
  }
  const config = { staticPodPath: folder, staticPodURL: '', nodeName: 'n', fileCheckFrequencyMs: 20_000 }
  const context = { config, clock: realClock, log: noLog, client: { of: () => client } } as unknown as KubeletContext
  const update = ({ metadata: { name } }: Pod) => {
    if (name?.startsWith('fails')) throw new Error('cannot')
    started.push(name)
  }
  const statics = createStaticPods(context, () => {})
  const running = statics.run({ update, deleted: () => {} } as unknown as PodWorkers, stop.signal)
  await Promise.race([all, running])
  await statics.read
  assert.deepEqual(
    [started, created],
    [
      ['refused-n', 'web-n'],
      ['fails-n', 'web-n'],
    ],
  )
  stop.abort()
  await running
  await fs.rm(folder, { recursive: true })
})
