/**
 * Addresses that lead back to the API server or into its host: in the status of Nodes and Pods, behind Services and behind APIServices. A user who
 * may patch a status chooses where the API server connects, with the API server's certificate (CVE-2022-3294, CVE-2020-8555).
 */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { type AddressInfo, isIP } from 'node:net'
import { join } from 'node:path'
import test, { after, before, describe } from 'node:test'
import type { NodeAddress } from '#api/gen/types/core.v1'
import { apiServices, nodes, pods, services } from '#client/builtIn'
import { startTestApiServer, type TestApiServer, type TestListener } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { eventually, LocalCluster, obstacleToCluster } from '../../e2e/support/localCluster.ts'
import { rawHttp } from '../../integration/api/rawHttp.ts'
import { eventually as soon } from '../../integration/controllers/cluster.ts'
import { hostAddress } from './switchingBackend.ts'

const loopback = ['127.0.0.1', '127.9.9.9', '::1', '0.0.0.0', '::', '::ffff:127.0.0.1', '0:0:0:0:0:ffff:7f00:1']
const linkLocal = ['169.254.169.254', 'fe80::1', '224.0.0.1']
const names = ['localhost', 'localhost.']
const own = hostAddress ? [hostAddress, `::ffff:${hostAddress}`] : []
const refused = /address not allowed/

describe('a cluster of simulated nodes, whose kubelets do listen on loopback', { skip: obstacleToCluster(false) }, () => {
  let cluster: LocalCluster
  let apiPort = 0
  before(async () => {
    cluster = await LocalCluster.start('attack-sim', ['--runtime', 'simulated', '--simulated-nodes', '2'])
    apiPort = Number(new URL(await cluster.must(['config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}'])).port)
    await cluster.must(['create', 'clusterrole', 'mallory', '--verb=get,patch', '--resource=nodes/proxy,nodes/status'])
    await cluster.must(['create', 'clusterrolebinding', 'mallory', '--clusterrole=mallory', '--user=mallory'])
    await cluster.mustWith(JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'evil' } }), ['create', '-f', '-'])
  })
  after(async () => {
    await cluster?.delete()
  })

  const claim = (addresses: readonly NodeAddress[], Port: number) => {
    const patch = JSON.stringify({ status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port } } } })
    return cluster.kubectl(['--as=mallory', 'patch', 'node', 'evil', '--subresource=status', '--type=merge', '-p', patch])
  }
  const portOf = async (node: string) => Number(await cluster.must(['get', 'node', node, '-o', 'jsonpath={.status.daemonEndpoints.kubeletEndpoint.Port}']))

  test('API-29 nodes/proxy does not reach the API server with its kubelet certificate, whatever the status claims', async () => {
    let tried = 0
    for (const address of [...loopback, ...linkLocal, ...own]) {
      const claimed = await claim([{ type: 'InternalIP', address }], apiPort)
      // The API may refuse to store a spelling.
      if (claimed.code !== 0) continue
      tried++
      for (const name of ['evil', `evil:${apiPort}`, `https:evil:${apiPort}`, `http:evil:${apiPort}`]) {
        const { code, stdout, stderr } = await cluster.kubectl([
          '--as=mallory',
          'get',
          '--raw',
          `/api/v1/nodes/${name}/proxy/api/v1/namespaces/kube-system/secrets`,
        ])
        assert.notEqual(code, 0, stdout)
        assert.match(stderr, refused, `${name} at ${address}`)
      }
    }
    assert.ok(tried >= 6, `${tried} addresses were stored`)
  })

  test('API-29 nodes/proxy to a loopback address is for the node whose kubelet this process runs there', async () => {
    const [first, second] = (await cluster.must(['get', 'nodes', '-l', 'skiff.dev/runtime=simulated', '-o', 'jsonpath={.items[*].metadata.name}'])).split(' ')
    assert.equal(await cluster.must(['--as=mallory', 'get', '--raw', `/api/v1/nodes/${first}/proxy/healthz`]), 'ok')
    await claim([{ type: 'InternalIP', address: '127.0.0.1' }], await portOf(second ?? ''))
    assert.match((await cluster.kubectl(['--as=mallory', 'get', '--raw', '/api/v1/nodes/evil/proxy/healthz'])).stderr, refused)
  })

  test('API-24 logs and exec do not follow a claimed loopback address either', async () => {
    await claim([{ type: 'InternalIP', address: '127.0.0.1' }], apiPort)
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { nodeName: 'evil', containers: [{ name: 'c', image: 'x:1' }] } }
    await cluster.mustWith(JSON.stringify(pod), ['create', '-f', '-'])
    for (const args of [
      ['logs', 'p'],
      ['exec', 'p', '--', 'id'],
    ]) {
      assert.match((await cluster.kubectl(args)).stderr, refused, args.join(' '))
    }
  })

  test('AUZ-01 the certificate that the API server shows to kubelets has no group, and its user has the API of kubelets only', async () => {
    const file = join(cluster.dir, 'home/clusters/attack-sim/pki/apiserver-kubelet-client.crt')
    assert.equal(new X509Certificate(readFileSync(file)).subject, 'CN=kube-apiserver-kubelet-client')
    const may = async (...what: string[]) => (await cluster.kubectl(['auth', 'can-i', '--as=kube-apiserver-kubelet-client', ...what])).stdout.trim()
    await eventually(
      'the binding',
      10_000,
      () => may('get', 'nodes', '--subresource=proxy'),
      (text) => text === 'yes',
    )
    for (const what of [
      ['create', 'nodes', '--subresource=proxy'],
      ['get', 'nodes', '--subresource=log'],
      ['get', 'nodes', '--subresource=metrics'],
      ['get', 'nodes', '--subresource=stats'],
      ['list', 'nodes'],
    ]) {
      assert.equal(await may(...what), 'yes', what.join(' '))
    }
    for (const what of [
      ['get', 'secrets', '-A'],
      ['list', 'pods', '-A'],
      ['patch', 'nodes'],
      ['patch', 'nodes', '--subresource=status'],
      ['create', 'pods'],
      ['*', '*'],
    ]) {
      assert.equal(await may(...what), 'no', what.join(' '))
    }
  })
})

describe('an API server whose kubelets are elsewhere', () => {
  const core = '/api/v1/namespaces/default'
  let api: TestApiServer
  let listener: TestListener
  let reached = 0
  const trap = async () => {
    const server = createServer(await testCertificates(), (_request, response) => {
      reached++
      response.end('reached')
    })
    await new Promise<void>((resolve) => server.listen(0, '::', resolve))
    return server
  }
  let server: Awaited<ReturnType<typeof trap>>
  let trapPort = 0
  before(async () => {
    server = await trap()
    trapPort = (server.address() as AddressInfo).port
    api = await startTestApiServer({ kubelet: await testCertificates(), config: { proxyClient: await testCertificates('CN=front-proxy-client') } })
    listener = await api.listen()
    await api.client.of(nodes).create({ metadata: { name: 'n' }, spec: {} })
    await api.client.of(pods).create({ metadata: { namespace: 'default', name: 'p' }, spec: { containers: [{ name: 'c', image: 'x' }] } })
    await api.client.of(pods).createSubresource({ namespace: 'default', name: 'p' }, 'binding', { target: { kind: 'Node', name: 'n' } })
  })
  after(async () => {
    await api.close()
    server.close()
  })

  const nodeAt = (type: string, address: string, Port: number) => {
    const status = { addresses: [{ type, address }], daemonEndpoints: { kubeletEndpoint: { Port } } }
    return api.client.of(nodes).patch({ name: 'n' }, 'merge', { status }, { subresource: 'status' })
  }
  const get = async (path: string) => {
    const { status, body } = await rawHttp(listener, { path })
    return { status, text: body.toString() }
  }

  test('API-29 nodes/proxy goes to no loopback or link-local address and to none of its own, by number, by name and by any port', async () => {
    for (const address of [...loopback, ...linkLocal, ...names]) {
      await nodeAt(isIP(address) ? 'InternalIP' : 'Hostname', address, trapPort)
      for (const name of ['n', `n:${trapPort}`, `https:n:${trapPort}`, `http:n:${listener.port}`]) {
        const { status, text } = await get(`/api/v1/nodes/${name}/proxy/`)
        assert.equal(status, 400, `${name} at ${address}: ${text}`)
        assert.match(text, address === 'localhost.' ? /address not allowed|no such host/ : refused)
      }
    }
    for (const address of own) {
      await nodeAt('InternalIP', address, listener.port)
      for (const name of ['n', `https:n:${listener.port}`]) assert.match((await get(`/api/v1/nodes/${name}/proxy/`)).text, refused, `${name} at ${address}`)
    }
    assert.equal(reached, 0)
  })

  test('API-24 log, exec, attach and port-forward do not connect to the API server itself', async () => {
    for (const address of ['127.0.0.1', '::ffff:127.0.0.1', '0.0.0.0', 'localhost', ...own]) {
      await nodeAt(isIP(address) ? 'InternalIP' : 'Hostname', address, listener.port)
      assert.match((await get(`${core}/pods/p/log`)).text, refused, address)
      for (const what of ['exec?command=id&stdout=true', 'attach?stdout=true', 'portforward?ports=1']) {
        const headers = { connection: 'Upgrade', upgrade: 'SPDY/3.1' }
        const { status, body } = await rawHttp(listener, { method: 'POST', path: `${core}/pods/p/${what}`, headers })
        assert.equal(status, 500, what)
        assert.match(body.toString(), refused, what)
      }
    }
  })

  test('API-29 pods/proxy goes to no loopback address and to none of its own, and says so before it connects', async () => {
    let tried = 0
    for (const ip of [...loopback, ...linkLocal, ...own]) {
      const stored = await api.client
        .of(pods)
        .patch({ namespace: 'default', name: 'p' }, 'merge', { status: { podIP: ip, podIPs: [{ ip }] } }, { subresource: 'status' })
        .catch(() => undefined)
      // The API refuses to store some spellings.
      if (!stored) continue
      tried++
      const port = own.includes(ip) ? listener.port : trapPort
      assert.match((await get(`${core}/pods/https:p:${port}/proxy/`)).text, refused, ip)
    }
    assert.ok(tried >= 6, `${tried} addresses were stored`)
    assert.equal(reached, 0)
  })

  test('API-28 an APIService that leads back to the API server is not available: nothing is proxied in a circle', async () => {
    await api.client.of(services).create({ metadata: { namespace: 'default', name: 's' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
    const spec = { group: 'e.example.com', version: 'v1', groupPriorityMinimum: 1000, versionPriority: 15, insecureSkipTLSVerify: true }
    await api.client.of(apiServices).create({
      metadata: { name: 'v1.e.example.com' },
      spec: { ...spec, service: { namespace: 'default', name: 's', port: listener.port } },
    })
    await soon(async () => {
      const { status } = await api.client.of(apiServices).get({ name: 'v1.e.example.com' })
      const condition = status?.conditions?.find(({ type }) => type === 'Available')
      assert.equal(condition?.status, 'False')
      assert.match(condition?.message ?? '', refused)
    }, 20_000)
    assert.equal((await get('/apis/e.example.com/v1/things')).status, 503)
  })
})
