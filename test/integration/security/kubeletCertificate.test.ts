/**
 * The API server checks a kubelet's certificate against the address it dials when it knows the authority (--kubelet-certificate-authority): another node's
 * certificate is of the same authority and must not do. Upstream: pkg/kubelet/client (v1.36), whose TLS configuration leaves the check of names on.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { nodes, pods } from '#client/builtIn'
import { createAuthority, issueCertificate } from '#main/pki/certificates'
import { startTestApiServer } from '#testing/apiServer'
import { testCertificates } from '#testing/testCertificates'
import { httpsCall } from '../../support/httpsCall.ts'

for (const [what, host, status] of [
  ['is asked for logs, its certificate has its address', '127.0.0.1', 200],
  ['is not asked for logs, its certificate is for another node', '127.0.0.2', 500],
] as const) {
  test(`API-24 a kubelet ${what}`, async () => {
    const now = Date.now()
    const ca = await createAuthority('kubelets', now, 1)
    const serving = await issueCertificate(ca, { commonName: 'system:node:n1', usage: 'server', hosts: [host], validDays: 1 }, now)
    let asked = 0
    const kubelet = createServer(serving, (_request, response) => {
      asked++
      response.end('the log')
    })
    await new Promise<void>((resolve) => kubelet.listen(0, '127.0.0.1', resolve))
    const api = await startTestApiServer({ kubelet: { ...(await testCertificates()), ca: ca.cert } })
    try {
      const Port = (kubelet.address() as AddressInfo).port
      const addresses = [{ type: 'InternalIP', address: '127.0.0.1' }]
      await api.client.of(nodes).create({ metadata: { name: 'n1' }, spec: {}, status: { addresses, daemonEndpoints: { kubeletEndpoint: { Port } } } })
      await api.client.of(pods).create({ metadata: { namespace: 'default', name: 'p' }, spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'x' }] } })
      const server = await api.listen()
      const answer = await httpsCall(server, '/api/v1/namespaces/default/pods/p/log', { headers: { authorization: `Bearer ${server.token}` } })
      assert.equal(Math.min(answer.status, 500), status, JSON.stringify(answer.json))
      assert.equal(asked, status === 200 ? 1 : 0)
    } finally {
      await api.close()
      kubelet.close()
    }
  })
}
