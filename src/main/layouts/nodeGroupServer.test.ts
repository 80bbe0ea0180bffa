import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { CommandError, exitCodes } from '#cli/exitCodes'
import { connectGrpc, type GrpcConnectionOptions } from '#grpc/grpcConnection'
import { externalGrpcProto, externalGrpcService } from '#grpc/proto/externalGrpc'
import { loadService } from '#grpc/protoMessage'
import { createExec } from '#host/exec'
import { realClock } from '#testing/realClock'
import { testCertificates } from '#testing/testCertificates'
import { UsageError } from '../apiserver/options/flags.ts'
import { readOptions } from '../apiserver/options/readOptions.ts'
import { nodeGroupServing } from '../component/options/nodeGroupServing.ts'
import { clusterPaths, writeState } from '../localCluster/clusterState.ts'
import { freePort } from '../localCluster/freePort.ts'
import { createClusterGroups } from '../nodegroup/clusterGroups.ts'
import { runNodeGroupServer } from './nodeGroupServer.ts'

const nodeGroups = loadService(externalGrpcProto, externalGrpcService).get('NodeGroups')
type Pem = Awaited<ReturnType<typeof testCertificates>>

/** A home with the description of the cluster "lab", which does not run. */
async function withHome(use: (home: string) => Promise<void>): Promise<void> {
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'skiff-nodegroup-serve-'))
  const group = { name: 'small', min: 0, max: 5, like: {}, numbers: [1] }
  try {
    await writeState(clusterPaths(home, 'lab'), { name: 'lab', id: '0000', port: 0, nodes: [], simulatedNodes: [], verbosity: 0, nodeGroups: [group] })
    await use(home)
  } finally {
    await fs.rm(home, { recursive: true })
  }
}

const depsOf = (home: string) => ({ clock: realClock, exec: createExec(), isRoot: false, platform: 'linux', home, self: [] })

/** Waits for the server. */
async function groupsOver(port: number, options: GrpcConnectionOptions = {}): Promise<unknown> {
  const connection = connectGrpc(`127.0.0.1:${port}`, options)
  try {
    assert.ok(nodeGroups)
    return nodeGroups.response.decode(await connection.unary(nodeGroups.path, nodeGroups.request.encode({}), { timeoutMs: 20_000, waitForReady: true }))
  } finally {
    connection.close()
  }
}

const found = { nodeGroups: [{ id: 'small', minSize: 0, maxSize: 5, debug: 'small (0:5)' }] }

test('AUT-05 nodegroup serve answers clients with a certificate of the authority, and no others', () =>
  withHome(async (home) => {
    const [serving, client] = (await Promise.all(['CN=server', 'CN=client'].map((name) => testCertificates(name)))) as [Pem, Pem]
    const write = async (name: string, text: string) => {
      await fs.writeFile(path.join(home, name), text)
      return path.join(home, name)
    }
    const files = ['--cert', await write('cert', serving.cert), '--key', await write('key', serving.key), '--cacert', await write('ca', client.cert)]
    const port = await freePort()
    const stop = new AbortController()
    const served = runNodeGroupServer(depsOf(home), ['--name', 'lab', '--listen', `127.0.0.1:${port}`, '--v=0', ...files], stop.signal)
    try {
      assert.deepEqual(await groupsOver(port, { tls: { ...client, ca: serving.cert } }), found)
      const uninvited = connect({ host: '127.0.0.1', port, ca: serving.cert })
      const [error] = (await once(uninvited.resume(), 'error')) as [Error]
      assert.match(error.message, /certificate required|ECONNRESET/)
    } finally {
      stop.abort()
      assert.equal(await served, exitCodes.ok)
    }
  }))

test('AUT-05 nodegroup serve needs no certificates on a loopback address, and serves the only cluster', () =>
  withHome(async (home) => {
    const port = await freePort()
    const stop = new AbortController()
    const served = runNodeGroupServer(depsOf(home), ['--listen', `localhost:${port}`, '--v=0'], stop.signal)
    try {
      assert.deepEqual(await groupsOver(port), found)
    } finally {
      stop.abort()
      await served
    }
  }))

const faults: [args: string[], want: RegExp][] = [
  [['--listen', '0.0.0.0:8086'], /clients of 0\.0\.0\.0 need certificates/],
  [['--listen', 'example.com:8086'], /must be an IP address or localhost, a colon and a port/],
  [['--listen', '127.0.0.1'], /must be an IP address or localhost, a colon and a port/],
  [['--listen', '127.0.0.1:65536'], /must be an IP address or localhost, a colon and a port/],
  [['--cert', 'c', '--key', 'k'], /--cert, --key and --cacert must be given together/],
]
const noFiles = { file: (name: string) => ({ path: name, read: () => Promise.reject(new Error(`${name} cannot be read`)), follow: () => {} }) }
for (const [args, want] of faults)
  test(`AUT-05 nodegroup serve ${args.join(' ')} is refused`, () =>
    assert.rejects(readOptions({ serving: nodeGroupServing }, args, noFiles), (error) => error instanceof UsageError && want.test(error.message)))

test('AUT-05 the groups of a cluster that was deleted are an error', () =>
  withHome(async (home) => {
    const groups = createClusterGroups(depsOf(home), 'lab')
    assert.equal(await groups.state(), await groups.state())
    await fs.rm(clusterPaths(home, 'lab').dir, { recursive: true })
    await assert.rejects(groups.state(), (error) => error instanceof CommandError && error.exit === 'notFound')
  }))
