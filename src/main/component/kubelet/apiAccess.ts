/**
 * The kubelet's way to the API server (L5): its kubeconfig, or, the first time, a bootstrap kubeconfig with which it asks for a certificate of its own
 * and writes the kubeconfig. A renewed certificate is used for new connections at once. Upstream: kubelet/certificate/bootstrap/bootstrap.go,
 * cmd/kubelet/app/server.go buildKubeletClientConfig (v1.36).
 */
import fs from 'node:fs/promises'
import path from 'node:path'
import { toYaml } from '#api/machinery/yaml'
import { withoutNils } from '#api/schema/nils'
import type { Client } from '#client/client'
import { createClient } from '#client/clientOverTransport'
import type { CredentialSource } from '#client/credentials'
import { createHttpTransport } from '#client/httpTransport'
import { type RateLimit, rateLimitedTransport } from '#client/rateLimitedTransport'
import { meteredTransport } from '#client/restMetrics'
import { makeDirectory, writeFileAtomic } from '#host/files'
import { standaloneClient } from '#kubelet/sources/standaloneClient'
import type { ProcessTools } from '../../layouts/processTools.ts'
import type { WantedCertificate } from '../../pki/certificateRequest.ts'
import type { KeyPair } from '../../pki/certificates.ts'
import { live } from '../../pki/livePki.ts'
import { openAccess } from '../access.ts'
import { type CertificateStore, validityOf } from './certificateStore.ts'

export interface NodeIdentity {
  readonly nodeName: string
  readonly kubeconfig: string
  readonly bootstrapKubeconfig: string
  readonly store: CertificateStore
}

export function wantedClientCertificate(nodeName: string): WantedCertificate {
  return {
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
    signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
    usage: 'client auth',
  }
}

/** Does nothing where there is a kubeconfig and its certificate is still good. */
export async function bootstrap({ nodeName, kubeconfig, bootstrapKubeconfig, store }: NodeIdentity, tools: ProcessTools, signal: AbortSignal): Promise<void> {
  if (bootstrapKubeconfig === '' || (await isUsable(kubeconfig, store, tools))) return
  const { log, clock } = tools
  log.info('Asking for a client certificate with the bootstrap kubeconfig', { file: bootstrapKubeconfig })
  const access = await openAccess(bootstrapKubeconfig, '', tools)
  try {
    const { requestCertificate } = await import('../../pki/certificateRequest.ts')
    const pair = await requestCertificate(access.client('kubelet-bootstrap'), wantedClientCertificate(nodeName), clock, signal)
    await store.update(pair, clock.now())
    const { server, tls } = access.transport
    await makeDirectory(path.dirname(kubeconfig), 0o700)
    await writeFileAtomic(kubeconfig, kubeconfigText(server, tls?.ca?.toString(), store.currentPath), 0o600)
    log.info('Wrote the kubeconfig', { file: kubeconfig })
  } finally {
    await access.close()
  }
}

async function isUsable(kubeconfig: string, store: CertificateStore, { clock, log }: ProcessTools): Promise<boolean> {
  const text = await fs.readFile(kubeconfig, 'utf8').catch(() => undefined)
  if (text === undefined) return false
  if (!text.includes(store.currentPath)) return true
  const pair = await store.current()
  if (pair && validityOf(pair.cert).untilMs > clock.now()) return true
  log.warn('Part of the existing bootstrap client certificate is missing or expired', { file: store.currentPath })
  return false
}

function kubeconfigText(server: string, ca: string | undefined, certificate: string): string {
  const authority = ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }
  return toYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'default-cluster', cluster: { server, ...authority } }],
    users: [{ name: 'default-auth', user: { 'client-certificate': certificate, 'client-key': certificate } }],
    contexts: [{ name: 'default-context', context: { cluster: 'default-cluster', user: 'default-auth' } }],
    'current-context': 'default-context',
  })
}

export interface KubeletAccess {
  readonly client: Client
  /** Without a limit on how often: for leases and certificates. */
  readonly unlimited: Client
  /** With a limit of its own; 0: none. */
  limited(rateLimit: RateLimit): Client
  /** Uses the pair from now on; open connections are replaced. */
  use(pair: KeyPair): void
  close(): Promise<void>
}

/** The access of a kubelet that has no API server. */
export function standaloneAccess(): KubeletAccess {
  const client = standaloneClient()
  return { client, unlimited: client, limited: () => client, use() {}, async close() {} }
}

/** @throws UsageError when the kubeconfig leads nowhere */
export async function openKubeletAccess(kubeconfig: string, rateLimit: RateLimit, tools: ProcessTools): Promise<KubeletAccess> {
  const { transport } = await openAccess(kubeconfig, '', tools)
  let renewed: KeyPair | undefined
  const given = transport.tls
  const tls = live(() => ({ ...given, cert: renewed?.cert ?? given?.cert, key: renewed?.key ?? given?.key }))
  const http = createHttpTransport({
    ...transport,
    tls,
    credentials: credentialsOf(transport.credentials, () => renewed),
    userAgent: 'kubelet',
    tidy: withoutNils,
  })
  const metered = meteredTransport(http, tools.metrics, tools.clock, new URL(transport.server).host)
  const limited = (limit: RateLimit) => createClient(limit.qps > 0 ? rateLimitedTransport(metered, tools.clock, limit) : metered)
  return {
    client: limited(rateLimit),
    unlimited: createClient(metered),
    limited,
    use(pair) {
      renewed = pair
      void http.close()
    },
    close: () => http.close(),
  }
}

/** What the kubelet was given since goes before what its kubeconfig names. */
function credentialsOf(named: CredentialSource | undefined, renewed: () => KeyPair | undefined): CredentialSource | undefined {
  return (
    named && {
      get: async () => renewed() ?? named.get(),
      refresh: async (used) => (renewed() ? undefined : named.refresh(used)),
    }
  )
}
