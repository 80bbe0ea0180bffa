/** Velero: what its own command installs, its server as a process with the rights of its ServiceAccount, and its commands. */
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { kubeconfigOf } from '../support/install.ts'
import { apply, kubectl } from '../support/kubectl.ts'
import { freePort, Program } from '../support/program.ts'
import { keys, type ObjectStore } from './objectStore.ts'

const execute = promisify(execFile)
const { WORK = '' } = process.env
const program = path.join(WORK, 'bin/velero')
const credentials = path.join(WORK, 'aws-credentials')
export const system = 'velero'

/** @throws Error with what it wrote to its standard error */
export async function velero(...args: readonly string[]): Promise<string> {
  return (await execute(program, args, { maxBuffer: 64 * 1024 * 1024 })).stdout
}

interface Installed {
  readonly kind: string
  spec?: object
}

/** The Deployment has no replica: the server is a process of the suite. */
export async function installVelero({ url, bucket }: ObjectStore): Promise<void> {
  fs.writeFileSync(credentials, `[default]\naws_access_key_id=${keys.accessKeyId}\naws_secret_access_key=${keys.secretAccessKey}\n`, { mode: 0o600 })
  const location = `region=${keys.region},s3ForcePathStyle=true,s3Url=${url}`
  const images = ['--image=velero:suite', '--plugins=velero-plugin-for-aws:suite']
  const store = ['--provider=aws', `--bucket=${bucket}`, `--secret-file=${credentials}`, `--backup-location-config=${location}`]
  const text = await velero('install', '--dry-run', '-o', 'json', ...images, ...store, '--features=EnableCSI', '--use-volume-snapshots=false')
  const { items } = JSON.parse(text) as { items: readonly Installed[] }
  for (const item of items) if (item.kind === 'Deployment') item.spec = { ...item.spec, replicas: 0 }
  const isDefinition = ({ kind }: Installed) => kind === 'CustomResourceDefinition'
  await apply(...items.filter(isDefinition))
  await kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '-l', 'component=velero'])
  await apply(...items.filter((item) => !isDefinition(item)))
}

export async function startServer(): Promise<Program> {
  const kubeconfig = await kubeconfigOf(system, 'velero')
  const addresses = [`--metrics-address=127.0.0.1:${await freePort()}`, `--profiler-address=127.0.0.1:${await freePort()}`]
  // A check of what runs besides is due every two seconds, in place of ten.
  const flags = [`--plugin-dir=${path.join(WORK, 'plugins')}`, '--features=EnableCSI', '--item-operation-sync-frequency=2s', ...addresses]
  const env = { AWS_SHARED_CREDENTIALS_FILE: credentials, VELERO_NAMESPACE: system, TMPDIR: WORK }
  return new Program('velero', 'velero', ['server', '-n', system, '--kubeconfig', kubeconfig, ...flags], env)
}
