/**
 * The three programs of KEDA as processes of the suite, with the rights of their ServiceAccount and the flags of their manifests. The certificates are the suite's:
 * with its own, the operator exits after it has made them, and relies on the kubelet to start it again. In `realNode.ts` the operator makes them.
 */
import fs from 'node:fs'
import path from 'node:path'
import { openSsl } from '../../support/openssl.ts'
import { kubeconfigOf, serveFromHost } from '../support/install.ts'
import { kubectl, read } from '../support/kubectl.ts'
import { freePort, Program } from '../support/program.ts'

const { WORK = '' } = process.env
export const system = 'keda'
export const apiService = 'v1beta1.external.metrics.k8s.io'
const account = 'keda-operator'
const services = { operator: 'keda-operator', adapter: 'keda-metrics-apiserver', webhooks: 'keda-admission-webhooks' }
const webhookConfiguration = 'keda-admission'

export async function startPrograms(): Promise<Program[]> {
  const certificates = await makeCertificates()
  const kubeconfig = await kubeconfigOf(system, account)
  const namespaces = { POD_NAMESPACE: system, WATCH_NAMESPACE: '', KEDA_CLUSTER_OBJECT_NAMESPACE: system }
  const env = { KUBECONFIG: kubeconfig, KEDA_HTTP_DEFAULT_TIMEOUT: '', ...namespaces }
  const [metricsService, adapter, webhooks] = [await freePort(), await freePort(), await freePort()]
  await serveFromHost(system, services.adapter, 'https', adapter)
  await serveFromHost(system, services.webhooks, 'https', webhooks)
  const common = [`--cert-dir=${certificates}`]
  const silent = ['--metrics-bind-address=127.0.0.1:0', '--health-probe-bind-address=127.0.0.1:0']
  const address = `127.0.0.1:${metricsService}`
  const delegated = ['lister', 'authentication', 'authorization'].map((use) => `--${use}-kubeconfig=${kubeconfig}`)
  const files = [
    ['client-ca', 'ca.crt'],
    ['tls-cert', 'tls.crt'],
    ['tls-private-key', 'tls.key'],
  ].map(([flag, file]) => `--${flag}-file=${certificates}/${file}`)
  const operatorName = ['--metrics-service-address', address, '--metrics-service-grpc-authority', `${services.operator}.${system}.svc`]
  return [
    new Program('keda', 'operator', ['--leader-elect', ...common, ...silent, '--metrics-service-bind-address', address], env),
    new Program('keda-adapter', 'adapter', [`--secure-port=${adapter}`, `--port=${await freePort()}`, ...common, ...files, ...delegated, ...operatorName], env),
    new Program('keda-admission-webhooks', 'webhooks', [`--port=${webhooks}`, ...common, ...silent], env),
  ]
}

/** One certificate for all three, as KEDA has it. @returns the directory with ca.crt, tls.crt and tls.key */
async function makeCertificates(): Promise<string> {
  const openssl = openSsl()
  const authority = openssl.authority('KEDA')
  const names = Object.values(services).map((service) => `DNS:${service}.${system}.svc`)
  const { cert, key } = openssl.sign(authority, { subject: '/CN=keda', usage: 'serverAuth,clientAuth', names: names.join() })
  openssl.remove()
  const directory = path.join(WORK, 'certs')
  fs.mkdirSync(directory)
  for (const [file, content] of Object.entries({ 'ca.crt': authority.cert, 'tls.crt': cert, 'tls.key': key }))
    fs.writeFileSync(path.join(directory, file), content, { mode: 0o600 })
  await trust(authority.cert)
  return directory
}

/** What the operator does with its own certificates. */
async function trust(ca: string): Promise<void> {
  const caBundle = Buffer.from(ca).toString('base64')
  const { webhooks } = await read<{ webhooks: readonly object[] }>('validatingwebhookconfiguration', webhookConfiguration)
  const patches = webhooks.map((_, index) => ({ op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle }))
  await kubectl(['patch', 'validatingwebhookconfiguration', webhookConfiguration, '--type=json', '-p', JSON.stringify(patches)])
  await kubectl(['patch', 'apiservice', apiService, '--type=merge', '-p', JSON.stringify({ spec: { caBundle } })])
}
