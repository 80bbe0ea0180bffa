/**
 * Installs an operator from the manifest in its module. Usually its Deployments get no replicas, since its program runs as a process of the suite: with the rights
 * that its service account has, and the API server reaches it through its Service.
 */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { apply, kubectl } from './kubectl.ts'

const { WORK = '' } = process.env
const isDefinition = (document: string) => /^kind: CustomResourceDefinition$/m.test(document)

/** @param changed how a document is applied */
export async function install(manifest: string, changed: (document: string) => string = withoutReplicas): Promise<void> {
  const documents = manifest
    .split(/^---.*$/m)
    .filter((document) => /^kind:/m.test(document))
    .map(changed)
  const definitions = documents.filter(isDefinition)
  if (definitions.length > 0) {
    await applyOnServer(definitions)
    await kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all'])
  }
  await applyOnServer(documents.filter((document) => !isDefinition(document)))
}

function withoutReplicas(document: string): string {
  return /^kind: Deployment$/m.test(document) ? document.replace(/^ {2}replicas:.*\n/m, '').replace(/^spec:\n/m, 'spec:\n  replicas: 0\n') : document
}

/** On the server, since the annotation of the client would exceed its limit with large definitions. */
async function applyOnServer(documents: readonly string[]): Promise<void> {
  if (documents.length > 0) await kubectl(['apply', '--server-side', '-f', '-'], documents.join('\n---\n'))
}

/** A kubeconfig with a token of the service account. */
export async function kubeconfigOf(namespace: string, serviceAccount: string): Promise<string> {
  const token = (await kubectl(['create', 'token', serviceAccount, '-n', namespace, '--duration=2h'])).trim()
  const { clusters } = JSON.parse(await kubectl(['config', 'view', '--raw', '--minify', '-o', 'json'])) as { clusters: [{ cluster: object }] }
  const file = path.join(WORK, `kubeconfig-${serviceAccount}`)
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'suite', cluster: clusters[0].cluster }],
    users: [{ name: serviceAccount, user: { token } }],
    contexts: [{ name: 'suite', context: { cluster: 'suite', user: serviceAccount, namespace } }],
    'current-context': 'suite',
  }
  fs.writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
  return file
}

/** Makes the host an endpoint of the Service, whose port has this name. */
export async function serveFromHost(namespace: string, service: string, portName: string, port: number): Promise<void> {
  await apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${service}-host`, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: portName, port, protocol: 'TCP' }],
    endpoints: [{ addresses: [hostAddress()], conditions: { ready: true } }],
  })
}

/** An EndpointSlice may not have a loopback address. */
function hostAddress(): string {
  const addresses = Object.values(os.networkInterfaces()).flatMap((all) => all ?? [])
  const found = addresses.find(({ family, internal }) => family === 'IPv4' && !internal)
  if (!found) throw new Error('the host has no IPv4 address but loopback')
  return found.address
}
