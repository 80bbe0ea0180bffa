/** A kubelet's API on a port of this host, with certificates of its own. */
import type { Clock } from '#base/clock'
import { noLog } from '#base/log'
import type { Kubelet } from '#kubelet/kubelet'
import { createKubeletServer } from '#kubelet/server/kubeletServer'
import { createAuthority, issueCertificate } from '#main/pki/certificates'

export interface ClientTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** Runs the server while `run` works, with the credentials of an administrator. */
export async function withKubeletServer(view: Kubelet['view'], clock: Clock, run: (port: number, tls: ClientTls) => Promise<void>): Promise<void> {
  const ca = await createAuthority('test', clock.now(), 1)
  const serving = await issueCertificate(ca, { commonName: 'node-1', usage: 'server', hosts: ['127.0.0.1'], validDays: 1 }, clock.now())
  const client = await issueCertificate(ca, { commonName: 'tester', organizations: ['system:masters'], usage: 'client', validDays: 1 }, clock.now())
  const auth = {
    anonymous: false,
    authenticateToken: async () => undefined,
    authorize: async ({ groups }: { readonly groups: readonly string[] }) => groups.includes('system:masters'),
  }
  const server = createKubeletServer(
    { view, auth, clock, log: noLog },
    { address: '127.0.0.1', port: 0, cert: serving.cert, key: serving.key, clientCa: ca.cert },
  )
  const stopServer = new AbortController()
  const serverRunning = server.run(stopServer.signal)
  try {
    await run(await server.listening, { ca: ca.cert, cert: client.cert, key: client.key })
  } finally {
    stopServer.abort()
    await serverRunning
  }
}
