import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { freePort } from '../localCluster/freePort.ts'
import { runEtcdServer } from './etcdServer.ts'

test('ETC-22 skiff etcd serve shows a renewed certificate to new connections, and asks clients for theirs as before', async () => {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-etcd-serve-'))
  const file = (name: string) => path.join(directory, name)
  const [first, second, client] = (await Promise.all(['CN=first', 'CN=second', 'CN=client'].map((name) => testCertificates(name)))) as [Pem, Pem, Pem]
  const write = (pem: Pem) => Promise.all([fs.writeFile(file('cert'), pem.cert), fs.writeFile(file('key'), pem.key)])
  await write(first)
  await fs.writeFile(file('ca'), client.cert)
  const port = await freePort()
  const tls = [`--cert-file=${file('cert')}`, `--key-file=${file('key')}`, `--trusted-ca-file=${file('ca')}`, '--client-cert-auth']
  const stop = new AbortController()
  const served = runEtcdServer([`--data-dir=${file('data')}`, `--listen-client-urls=https://127.0.0.1:${port}`, '--v=0', ...tls], stop.signal)
  const shown = async (): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ...client })
    try {
      await once(socket, 'secureConnect')
      return new X509Certificate(socket.getPeerCertificate().raw).subject
    } catch {
      return 'no connection'
    } finally {
      socket.destroy()
    }
  }
  const untilShown = async (wanted: string) => {
    const deadlineMs = realClock.monotonicMs() + 20_000
    for (let found = await shown(); found !== wanted; found = await shown()) {
      assert.ok(realClock.monotonicMs() < deadlineMs, `${found} is shown, not ${wanted}`)
      await realClock.sleep(20)
    }
  }
  try {
    await untilShown('CN=first')
    await write(second)
    await untilShown('CN=second')
    const uninvited = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
    const [error] = (await once(uninvited.resume(), 'error')) as [Error]
    assert.match(error.message, /certificate required|ECONNRESET/)
  } finally {
    stop.abort()
    await served
    await fs.rm(directory, { recursive: true })
  }
})

type Pem = Awaited<ReturnType<typeof testCertificates>>
