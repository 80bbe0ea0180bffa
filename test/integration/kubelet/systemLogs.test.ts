/** GET /logs of a kubelet whose clients leave early: the file that was opened for them is closed. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { noLog } from '#base/log'
import { VirtualClock } from '#base/virtualClock'
import { kubeletConfig } from '#kubelet/core/config'
import type { KubeletView } from '#kubelet/core/kubeletView'
import type { KubeletAuth } from '#kubelet/server/auth'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import { until } from '../../support/until.ts'

const directory = mkdtempSync(join(tmpdir(), 'logs-'))
const file = join(directory, 'var/log/large')
const fileBytes = 16 * 2 ** 20
let serving: KeyPair
let ca: KeyPair

before(async () => {
  mkdirSync(join(directory, 'var/log'), { recursive: true })
  writeFileSync(file, Buffer.alloc(fileBytes, 'x'))
  const now = Date.now()
  ca = await createAuthority('test', now, 1)
  serving = await issueCertificate(ca, { commonName: 'node', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, now)
})
after(() => rmSync(directory, { recursive: true }))

const linkOf = (path: string) => {
  try {
    return [readlinkSync(path)]
  } catch {
    // The descriptor of this reading itself.
    return []
  }
}
const openFiles = () =>
  readdirSync('/proc/self/fd')
    .flatMap((fd) => linkOf(`/proc/self/fd/${fd}`))
    .filter((path) => path === file).length

interface Served {
  readonly url: string
  /** Lets requests in that wait for their authorization. */
  admit(): void
  readonly waiting: () => number
}

async function withServer(run: (served: Served) => Promise<void>): Promise<void> {
  const config = kubeletConfig({ nodeName: 'n1' })
  const host = { path: (path: string) => directory + path }
  const view = { config, pods: () => [], latestLoopEntryMs: () => undefined, context: () => ({ host }) } as unknown as KubeletView
  let admit = () => {}
  let waiting = 0
  const admitted = new Promise<void>((resolve) => {
    admit = resolve
  })
  const auth: KubeletAuth = {
    anonymous: true,
    authenticateToken: async () => undefined,
    authorize: async () => {
      waiting++
      await admitted
      return true
    },
  }
  const tls = { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, clientCa: ca.cert }
  const server = createKubeletServer({ view, auth, clock: new VirtualClock(), log: noLog }, tls)
  const stop = new AbortController()
  const running = server.run(stop.signal)
  try {
    await run({ url: `https://127.0.0.1:${await server.listening}/logs/large`, admit, waiting: () => waiting })
  } finally {
    stop.abort()
    await running
  }
}

const skip = process.platform === 'linux' ? false : 'counts the descriptors in /proc'

test('KUB-17 the file of a request is closed, its client left before the answer began', { skip, timeout: 60_000 }, () =>
  withServer(async ({ url, admit, waiting }) => {
    const request = https.get(url, { ca: ca.cert, agent: false }).on('error', () => {})
    const closed = new Promise((resolve) => request.once('close', resolve))
    await until('the request waits', () => waiting() === 1)
    request.destroy()
    await closed
    await new Promise((resolve) => setTimeout(resolve, 100))
    admit()
    await new Promise((resolve) => setTimeout(resolve, 300))
    await until('the file is closed', () => openFiles() === 0)
  }),
)

test('KUB-17 the file of a request is closed, its client left in the middle of the answer', { skip, timeout: 60_000 }, () =>
  withServer(async ({ url, admit }) => {
    admit()
    const request = https.get(url, { ca: ca.cert, agent: false })
    const [answer] = (await once(request, 'response')) as [IncomingMessage]
    await once(answer, 'readable')
    assert.equal(openFiles(), 1)
    answer.on('error', () => {}).destroy()
    await until('the file is closed', () => openFiles() === 0)
  }),
)
