import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { toYaml } from '#api/machinery/yaml'
import { connectGrpc } from '#grpc/grpcConnection'
import { methodOf } from '#store/drivers/etcd/methods'
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

const never = new AbortController().signal

test('ETC-22 OBS-08 the server of a configuration file counts its calls, leases, watches and writes to the disk under etcd’s names', async () => {
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-etcd-serve-'))
  const port = await freePort()
  const settings = { 'data-dir': path.join(directory, 'data'), 'listen-client-urls': `http://127.0.0.1:${port}`, 'quota-backend-bytes': 1_000_000_000 }
  await fs.writeFile(path.join(directory, 'etcd.yml'), toYaml(settings))
  const stop = new AbortController()
  const served = runEtcdServer(['--config-file', path.join(directory, 'etcd.yml')], stop.signal)
  const connection = connectGrpc(`127.0.0.1:${port}`)
  const call = async (name: Parameters<typeof methodOf>[0], request: object) => {
    const method = methodOf(name)
    await connection.unary(method.path, method.request.encode(request), { timeoutMs: 20_000, waitForReady: true })
  }
  try {
    const key = Buffer.from('a')
    await call('KV.Put', { key, value: key })
    await call('KV.Range', { key })
    await call('KV.Txn', { success: [{ requestTxn: { success: [{ requestPut: { key, value: key } }] } }, { requestRange: { key } }] })
    await assert.rejects(call('KV.Put', { value: key }), { code: 'INVALID_ARGUMENT' })
    await call('Lease.LeaseGrant', { ttl: 100, id: 7 })
    const watch = methodOf('Watch.Watch')
    const watching = connection.duplex(watch.path, { signal: never })
    watching.send(watch.request.encode({ createRequest: { key } }))
    for await (const _ of watching.messages) break
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const sample = (name: string) =>
      text
        .split('\n')
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length + 1)
    const put = 'grpc_type="unary",grpc_service="etcdserverpb.KV",grpc_method="Put"'
    const wanted = {
      [`grpc_server_started_total{${put}}`]: '2',
      [`grpc_server_handled_total{${put},grpc_code="OK"}`]: '1',
      [`grpc_server_handled_total{${put},grpc_code="InvalidArgument"}`]: '1',
      etcd_mvcc_put_total: '2',
      etcd_mvcc_range_total: '2',
      etcd_mvcc_txn_total: '1',
      etcd_debugging_lease_granted_total: '1',
      etcd_server_proposals_pending: '0',
      etcd_server_proposals_failed_total: '0',
      etcd_server_proposals_committed_total: '3',
      etcd_server_leader_changes_seen_total: '1',
      etcd_server_quota_backend_bytes: '1000000000',
    }
    assert.deepEqual(Object.fromEntries(Object.keys(wanted).map((name) => [name, sample(name)])), wanted)
    for (const name of ['etcd_disk_wal_fsync_duration_seconds', 'etcd_disk_backend_commit_duration_seconds']) assert.ok(sample(`${name}_count`), name)
    assert.notEqual(sample('etcd_disk_wal_fsync_duration_seconds_count'), '0')
  } finally {
    connection.close()
    stop.abort()
    await served
    await fs.rm(directory, { recursive: true })
  }
})

type Pem = Awaited<ReturnType<typeof testCertificates>>
