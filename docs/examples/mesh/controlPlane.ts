/**
 * The control plane of the mesh: a webhook that adds the sidecar to the pods of namespaces with the label mesh=on, and the signer of the certificates.
 * It needs openssl; an authority for the mesh is a key and a certificate of any kind (`openssl req -x509 -newkey ec ...`).
 */
import { execFile } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { certificateSigningRequests, type certificatesV1, type coreV1 } from 'skiff-kubernetes/client'
import { defineController } from 'skiff-kubernetes/controller'

const run = promisify(execFile)
export const signerName = 'mesh.example.com/workload'
const proxyUser = 1337

export interface MeshOptions {
  /** What the sidecar's container has: its image, how sidecar.ts is started there, and the mounts that this needs. */
  readonly proxy: Pick<coreV1.Container, 'image' | 'command' | 'volumeMounts'>
  /** The volumes of the proxy's mounts. */
  readonly volumes?: readonly coreV1.Volume[]
  /** How `nft RULES` is started in the same image. */
  readonly nft: string
  /** The mesh authority's certificate, PEM. */
  readonly ca: string
  /** Strict refuses connections to the application that have no certificate of the mesh. */
  readonly mode: 'strict' | 'permissive'
  /** Ports of Services to which the application's requests are encrypted. */
  readonly outbound: readonly number[]
}

/** `8080:15100,9090:15101`, as sidecar.ts reads them. */
const portPairs = (ports: readonly number[], first: number) => ports.map((port, i) => `${port}:${first + i}`).join()
const redirect = (pairs: string) => pairs && `meta l4proto tcp redirect to :tcp dport map { ${pairs} };`

/** Connections from outside of the pod arrive at the proxy; so do those of the application, but not the proxy's own. */
function rulesOf(inbound: string, outbound: string): string {
  return `table ip mesh {
    chain inbound { type nat hook prerouting priority -100; ${redirect(inbound)} }
    chain outbound { type nat hook output priority -100; oifname "lo" return; meta skuid ${proxyUser} return; ${redirect(outbound)} }
  }`
}

interface AskedProbe {
  readonly port: number
  readonly path: string
}

/** The kubelet's probes of the application go by way of the sidecar, which accepts no plain connection for the application. @param asked gets the probe */
function probedBySidecar(probe: coreV1.Probe, { ports = [] }: coreV1.Container, asked: AskedProbe[]): coreV1.Probe {
  if (!probe.httpGet) return probe
  const { port, path: askedPath = '/' } = probe.httpGet
  const number = typeof port === 'number' ? port : (ports.find(({ name }) => name === port)?.containerPort ?? Number(port))
  return { ...probe, httpGet: { port: 15020, path: `/probe/${asked.push({ port: number, path: askedPath }) - 1}` } }
}

/** A pod with the sidecar: an init container that writes the rules, then the proxy, which starts before the application and ends after it. */
export function withSidecar(pod: coreV1.Pod, options: MeshOptions): coreV1.Pod {
  const { spec } = pod
  if (!spec) return pod
  const own = spec.containers.flatMap(({ ports = [] }) => ports.map(({ containerPort }) => containerPort))
  const inbound = portPairs(own, 15_100)
  const outbound = portPairs(options.outbound, 15_200)
  const asked: AskedProbe[] = []
  const containers = spec.containers.map((container) => {
    const { readinessProbe, livenessProbe, startupProbe } = container
    const given = Object.entries({ readinessProbe, livenessProbe, startupProbe })
    return { ...container, ...Object.fromEntries(given.flatMap(([name, probe]) => (probe ? [[name, probedBySidecar(probe, container, asked)]] : []))) }
  })
  const env = { MESH_PROBES: JSON.stringify(asked), MESH_CA: options.ca, MESH_MODE: options.mode, MESH_INBOUND: inbound, MESH_OUTBOUND: outbound }
  const rules: coreV1.Container = {
    ...{ name: 'mesh-rules', ...options.proxy, command: [options.nft, rulesOf(inbound, outbound)] },
    securityContext: { runAsUser: 0, capabilities: { add: ['NET_ADMIN'] } },
  }
  const proxy: coreV1.Container = {
    ...{ name: 'mesh-proxy', restartPolicy: 'Always', ...options.proxy },
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ...Object.entries(env).map(([name, value]) => ({ name, value })),
    ],
    securityContext: { runAsUser: proxyUser },
    startupProbe: { httpGet: { path: '/ready', port: 15020 }, periodSeconds: 1, failureThreshold: 60 },
  }
  const volumes = [...(spec.volumes ?? []), ...(options.volumes ?? [])]
  return { ...pod, spec: { ...spec, containers, volumes, initContainers: [rules, proxy, ...(spec.initContainers ?? [])] } }
}

interface Review {
  readonly uid: string
  readonly object: coreV1.Pod
}

/** The answer to an AdmissionReview's request for a pod. */
export function inject({ uid, object }: Review, options: MeshOptions): object {
  const patch = [{ op: 'replace', path: '/spec', value: withSidecar(object, options).spec }]
  return { uid, allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
}

/** The identity of system:serviceaccount:NAMESPACE:NAME; other users have none, and get no certificate. */
function identityOf(username = ''): string | undefined {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(username) ?? []
  return name === undefined ? undefined : `spiffe://cluster.local/ns/${namespace}/sa/${name}`
}

/** Signs the key of the request for this identity. Names in the request do not count: the API server says who asks. */
async function sign(request: string, identity: string, authority: { readonly keyFile: string; readonly certFile: string }): Promise<string> {
  const dir = await fs.mkdtemp(path.join(os.tmpdir(), 'mesh-'))
  try {
    const extensions = `subjectAltName=critical,URI:${identity}\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\n`
    await fs.writeFile(path.join(dir, 'extensions'), extensions)
    await fs.writeFile(path.join(dir, 'request'), Buffer.from(request, 'base64'))
    const signed = ['x509', '-req', '-in', `${dir}/request`, '-extfile', `${dir}/extensions`, '-days', '1']
    const { stdout } = await run('openssl', [...signed, '-CA', authority.certFile, '-CAkey', authority.keyFile, '-set_serial', `0x${BigInt(Date.now()).toString(16)}`])
    return stdout
  } finally {
    await fs.rm(dir, { recursive: true })
  }
}

/** Approves and signs the requests of service accounts. */
export const meshSigner = (authority: { readonly keyFile: string; readonly certFile: string }) =>
  defineController({
    name: 'mesh-signer',
    for: certificateSigningRequests,
    async reconcile({ object, ref, client, signal }) {
      const { spec, status } = object
      if (spec.signerName !== signerName || status?.certificate !== undefined) return
      const identity = identityOf(spec.username)
      const requests = client.of(certificateSigningRequests)
      const type = identity === undefined ? 'Denied' : 'Approved'
      const condition = { type, status: 'True', reason: 'MeshIdentity', message: identity ?? 'only service accounts have an identity in the mesh' }
      if (!status?.conditions?.length) {
        const decided = { ...object, status: { conditions: [condition] } }
        return void (await requests.updateSubresource<certificatesV1.CertificateSigningRequest>(ref, 'approval', decided, { signal }))
      }
      if (identity === undefined || !status.conditions.some((one) => one.type === 'Approved')) return
      const certificate = Buffer.from(await sign(spec.request, identity, authority)).toString('base64')
      await requests.updateStatus({ ...object, status: { ...status, certificate } }, { signal })
    },
  })
