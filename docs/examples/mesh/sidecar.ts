/**
 * The proxy of a service mesh in one file: it runs next to the application of a pod, encrypts what the pod sends to other pods of the mesh, and accepts
 * connections with a certificate of the mesh only. Rules in the pod's network namespace redirect its connections to here (see controlPlane.ts).
 */
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'

const account = '/var/run/secrets/kubernetes.io/serviceaccount'
const { POD_NAME: pod = '', MESH_CA: ca = '', MESH_MODE: mode = 'strict' } = process.env
/** `8080:15100,9090:15101`: the port of the application or Service, and the port where connections to it arrive here. */
const portsOf = (text = '') => text.split(',').filter(Boolean).map((pair) => pair.split(':').map(Number) as [number, number])
const inbound = portsOf(process.env.MESH_INBOUND)
const outbound = portsOf(process.env.MESH_OUTBOUND)
const probes = JSON.parse(process.env.MESH_PROBES ?? '[]') as readonly { readonly port: number; readonly path: string }[]
const connections = { encrypted: 0, plain: 0, refused: 0 }
const peers = new Map<string, number>()

interface Credentials {
  readonly key: string
  readonly cert: string
}

/** One request to the API server, as the pod's service account. */
function api(method: string, path: string, body?: object): Promise<{ readonly status?: { readonly certificate?: string } }> {
  const options = {
    ...{ method, path, host: process.env.KUBERNETES_SERVICE_HOST, port: process.env.KUBERNETES_SERVICE_PORT, timeout: 10_000 },
    ca: fs.readFileSync(`${account}/ca.crt`),
    headers: { authorization: `Bearer ${fs.readFileSync(`${account}/token`, 'utf8')}`, 'content-type': 'application/json' },
  }
  return new Promise((resolve, reject) => {
    const request = https.request(options, async (response) => {
      const text = (await response.setEncoding('utf8').toArray()).join('')
      if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text))
      else reject(new Error(`${method} ${path}: ${response.statusCode} ${text}`))
    })
    request.on('timeout', () => request.destroy(new Error('the API server does not answer')))
    request.on('error', reject).end(body && JSON.stringify(body))
  })
}

/** A new key, and a certificate for it by way of a CertificateSigningRequest; the signer decides what name it has. */
async function requestCredentials(): Promise<Credentials> {
  const words = 'req -new -config /dev/null -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout - -subj /CN=workload'
  const made = execFileSync('openssl', words.split(' '), { env: { ...process.env, OPENSSL_CONF: '/dev/null' }, stdio: ['ignore', 'pipe', 'pipe'] }).toString()
  const at = made.indexOf('-----BEGIN CERTIFICATE REQUEST-----')
  const [key, request] = [made.slice(0, at), Buffer.from(made.slice(at)).toString('base64')]
  const name = `mesh-${pod}-${Date.now()}`
  const usages = ['digital signature', 'client auth', 'server auth']
  const spec = { signerName: 'mesh.example.com/workload', request, usages, expirationSeconds: 3600 }
  const all = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
  await api('POST', all, { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name }, spec })
  for (;;) {
    const { certificate } = (await api('GET', `${all}/${name}`)).status ?? {}
    if (certificate !== undefined) return { key, cert: Buffer.from(certificate, 'base64').toString() }
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** spiffe://cluster.local/ns/NAMESPACE/sa/ACCOUNT of a certificate. */
const identityOf = (socket: tls.TLSSocket) => /URI:(spiffe:[^,\s]+)/.exec(socket.getPeerCertificate().subjectaltname ?? '')?.[1]

function join(one: net.Socket, other: net.Socket): void {
  one.pipe(other).pipe(one)
  one.on('error', () => other.destroy())
  other.on('error', () => one.destroy())
}

/** The first byte of a TLS connection is 22, that of no request in HTTP is. */
const isTls = (first: Buffer) => first[0] === 22

function acceptConnections(applicationPort: number, secure: tls.Server): net.Server {
  secure.on('secureConnection', (socket) => {
    const peer = identityOf(socket) ?? 'unknown'
    peers.set(peer, (peers.get(peer) ?? 0) + 1)
    connections.encrypted++
    join(socket, net.connect(applicationPort, '127.0.0.1'))
  })
  return net.createServer((socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('readable', () => {
      const first: Buffer | null = socket.read()
      if (first === null) return socket.destroy()
      socket.unshift(first)
      if (isTls(first)) return secure.emit('connection', socket)
      connections[mode === 'strict' ? 'refused' : 'plain']++
      if (mode === 'strict') socket.destroy()
      else join(socket, net.connect(applicationPort, '127.0.0.1'))
    })
  })
}

/** Sends the requests of the application on. Their Host header names the Service; the redirected connection has lost its address. */
function forwardRequests(port: number, agent: https.Agent): http.Server {
  return http.createServer((request, response) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    const send = { agent, host, port, method: request.method, path: request.url, headers: request.headers }
    const forwarded = https.request(send, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', (error) => (response.headersSent ? response.destroy() : response.writeHead(502).end(`mesh: ${host}:${port}: ${error.message}\n`)))
    request.pipe(forwarded)
  })
}

/** The pod's own probes of the kubelet, which is not in the mesh, by their number: no other request gets past the proxy. The sidecar's readiness and metrics. */
function answerProbes(request: http.IncomingMessage, response: http.ServerResponse): void {
  const probed = probes[Number(/^\/probe\/(\d+)$/.exec(request.url ?? '')?.[1])]
  if (probed !== undefined) {
    const probe = http.get({ ...probed, timeout: 1000 }, (answer) => void answer.resume().on('end', () => response.writeHead(answer.statusCode ?? 502).end()))
    probe.on('timeout', () => probe.destroy()).on('error', () => response.writeHead(502).end())
  } else if (request.url === '/metrics') {
    const lines = Object.entries(connections).map(([kind, count]) => `mesh_inbound_connections_total{kind="${kind}"} ${count}`)
    response.end([...lines, ...[...peers].map(([peer, count]) => `mesh_peer_connections_total{peer="${peer}"} ${count}`), ''].join('\n'))
  } else response.writeHead(request.url === '/ready' ? 200 : 404).end()
}

async function start(): Promise<void> {
  let credentials = await requestCredentials()
  const secure = inbound.map(([port, own]) => {
    const server = tls.createServer({ ...credentials, ca, requestCert: true, rejectUnauthorized: true })
    acceptConnections(port, server).listen(own)
    return server
  })
  const checkServerIdentity = (host: string, { subjectaltname = '' }: tls.PeerCertificate) =>
    subjectaltname.includes('URI:spiffe://cluster.local/') ? undefined : new Error(`${host} has no identity of the mesh`)
  const agent = new https.Agent({ ...credentials, ca, keepAlive: true, checkServerIdentity })
  for (const [port, own] of outbound) forwardRequests(port, agent).listen(own)
  http.createServer(answerProbes).listen(15020)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 40 * 60_000))
    // A failure ends the process: the kubelet starts the sidecar again, and so it asks until it is answered.
    credentials = await requestCredentials()
    Object.assign(agent.options, credentials)
    for (const server of secure) server.setSecureContext({ ...credentials, ca })
  }
}

process.on('SIGTERM', () => process.exit(0))
await start()
