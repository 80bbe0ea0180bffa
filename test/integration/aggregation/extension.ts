/** A cluster with the sample extension server: certificates, the server's process, the API server that knows it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { APIService } from '#api/gen/types/apiregistration.v1'
import { apiServices, services } from '#client/builtIn'
import { createAuthority, issueCertificate, type KeyPair } from '#main/pki/certificates'
import type { TestApiServer } from '#testing/apiServer'
import { sourceProgram } from '../../support/sourceProgram.ts'
import { eventually } from '../controllers/cluster.ts'

export const apiServiceName = 'v1alpha1.wardle.example.com'
export const groupPath = '/apis/wardle.example.com/v1alpha1'
export const flunders = `${groupPath}/namespaces/default/flunders`

export interface Certificates {
  readonly proxyCa: KeyPair
  readonly proxyClient: KeyPair
  readonly servingCa: KeyPair
  readonly serving: KeyPair
}

export async function certificates(): Promise<Certificates> {
  const now = Date.now()
  const [proxyCa, servingCa] = await Promise.all([createAuthority('front-proxy-ca', now, 10), createAuthority('sample-ca', now, 10)])
  const [proxyClient, serving] = await Promise.all([
    issueCertificate(proxyCa, { commonName: 'front-proxy-client', usage: 'client', validDays: 1 }, now),
    issueCertificate(servingCa, { commonName: 'sample', usage: 'server', hosts: ['sample.default.svc'], validDays: 1 }, now),
  ])
  return { proxyCa, proxyClient, servingCa, serving }
}

export interface SampleServer {
  readonly port: number
  stop(): Promise<void>
}

/** Resolves when it listens. `aggregated`: it speaks aggregated discovery. */
export async function startSampleServer(made: Certificates, { port = 0, aggregated = true } = {}): Promise<SampleServer> {
  const config = JSON.stringify({ port, aggregated, ...made.serving, proxyCa: made.proxyCa.cert })
  const script = fileURLToPath(new URL('./sampleServer.ts', import.meta.url))
  const child: ChildProcess = spawn(process.execPath, sourceProgram(script), {
    env: { ...process.env, SAMPLE_SERVER: config },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout?.once('data', (chunk) => resolve(String(chunk)))
    child.once('exit', (code) => reject(new Error(`the sample server ended with ${code}`)))
  })
  return {
    port: Number(line),
    stop: () => {
      child.kill('SIGKILL')
      return gone
    },
  }
}

/** The Service `sample`, which leads to this host, and the APIService. */
export async function register(api: TestApiServer, port: number, spec: Partial<APIService['spec']>): Promise<void> {
  await api.client.of(services).create({ metadata: { namespace: 'default', name: 'sample' }, spec: { type: 'ExternalName', externalName: 'localhost' } })
  await api.client.of(apiServices).create({
    metadata: { name: apiServiceName },
    spec: {
      ...{ group: 'wardle.example.com', version: 'v1alpha1', groupPriorityMinimum: 1000, versionPriority: 15 },
      service: { namespace: 'default', name: 'sample', port },
      ...spec,
    },
  })
}

export function base64(pem: string): string {
  return Buffer.from(pem).toString('base64')
}

/** Waits for the Available condition to have this reason; returns its status and message. */
export function condition(api: TestApiServer, reason: string, name = apiServiceName): Promise<{ status: string; message: string }> {
  return eventually(async () => {
    const { status } = await api.client.of(apiServices).get({ name })
    const found = status?.conditions?.find(({ type }) => type === 'Available')
    if (found?.reason !== reason) throw new Error(`${found?.reason}: ${found?.message}`)
    return { status: found.status, message: found.message ?? '' }
  }, 20_000)
}
