/**
 * The files of a control plane that has joined (L5): keys and certificates, kubeconfigs, and how its components are started. The names are kubeadm's; private keys
 * are for root alone.
 */
import path from 'node:path'
import { certificateBlocks } from '#base/pem'
import { CommandError } from '#cli/exitCodes'
import { exists, makeDirectory, readTextIfExists, writeFileAtomic } from '#host/files'
import type { KeyPair } from '../pki/certificates.ts'
import { ensureClientCertificate, ensurePki } from '../pki/pki.ts'
import type { ControlPlaneFiles } from './controlPlanePaths.ts'
import type { ControlPlanePlan } from './controlPlanePlan.ts'
import { isAmong, type SharedCertificates, sharedFiles } from './sharedCertificates.ts'

/** @throws CommandError alreadyExists when this machine has joined, or keys of a cluster are there */
export async function refuseJoined({ pki, plan }: ControlPlaneFiles, configDir: string): Promise<void> {
  if (await exists(plan)) {
    throw new CommandError('alreadyExists', `${plan} is there: this machine is a control plane already`, {
      hint: `run it: skiff join --control-plane --config-dir ${configDir}; skiff leave takes the machine out`,
    })
  }
  for (const file of ['ca.key', 'sa.key', 'front-proxy-ca.key'].map((name) => path.join(pki, name))) if (await exists(file)) throw belongsToCluster(file)
}

/**
 * A machine that is a node of the same cluster may become a control plane.
 * @param trusted PEM
 * @throws CommandError alreadyExists when it is a node of another cluster, whose authority the kubelet reads
 */
export async function refuseForeignNode({ pki }: ControlPlaneFiles, trusted: string): Promise<void> {
  const file = path.join(pki, 'ca.crt')
  const text = await readTextIfExists(file)
  if (text !== undefined && !certificateBlocks(text).every((certificate) => isAmong(trusted, certificate))) throw belongsToCluster(file)
}

function belongsToCluster(file: string): CommandError {
  return new CommandError('alreadyExists', `${file} is there: this machine belongs to a cluster already`, {
    hint: 'join with another --config-dir, or remove the directory if it is what a failed join has left',
  })
}

/** The plan last: with it, the machine has joined. */
export async function writeControlPlane(files: ControlPlaneFiles, shared: SharedCertificates, plan: ControlPlanePlan): Promise<void> {
  await makeDirectory(path.dirname(files.pki), 0o755)
  await makeDirectory(files.pki, 0o700)
  for (const [name, text] of Object.entries(sharedFiles(shared))) {
    if (text !== '') await writeFileAtomic(path.join(files.pki, name), text, name.endsWith('.key') ? 0o600 : 0o644)
  }
  await writeFileAtomic(files.plan, `${JSON.stringify(plan, null, 2)}\n`, 0o600)
}

/** @throws CommandError notFound when this machine has not joined */
export async function readPlan({ plan }: ControlPlaneFiles): Promise<ControlPlanePlan> {
  const text = await readTextIfExists(plan)
  if (text === undefined) {
    throw new CommandError('notFound', `${plan} is not there: this machine is no control plane yet`, {
      hint: 'on a control plane: skiff certs upload --print-join-command prints the command to join with',
    })
  }
  return JSON.parse(text) as ControlPlanePlan
}

/** Makes what is missing and renews what is due, and writes the kubeconfigs that name it. @returns the authority */
export async function ensureControlPlane(files: ControlPlaneFiles, { endpoint, servingNames, port }: ControlPlanePlan, nowMs: number): Promise<KeyPair> {
  const { pki } = files
  const { ca } = await ensurePki(pki, servingNames, nowMs)
  await ensureComponentCertificates(files, ca, nowMs)
  const here = `https://127.0.0.1:${port}`
  await writeKubeconfig(files.controllerManager, here, pki, 'controller-manager')
  await writeKubeconfig(files.scheduler, here, pki, 'scheduler')
  await writeKubeconfig(files.admin, `https://${endpoint}`, pki, 'admin')
  return ca
}

/** Those that the API server, which keeps the others, does not need. */
export async function ensureComponentCertificates({ pki }: ControlPlaneFiles, ca: KeyPair, nowMs: number): Promise<void> {
  for (const name of ['controller-manager', 'scheduler']) await ensureClientCertificate(pki, ca, name, `system:kube-${name}`, [], nowMs)
}

/** It names files, which its readers follow. */
async function writeKubeconfig(file: string, server: string, pki: string, name: string): Promise<void> {
  const user = { 'client-certificate': path.join(pki, `${name}.crt`), 'client-key': path.join(pki, `${name}.key`) }
  const kubeconfig = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'default',
    clusters: [{ name: 'default', cluster: { server, 'certificate-authority': path.join(pki, 'ca.crt') } }],
    users: [{ name: 'default', user }],
    contexts: [{ name: 'default', context: { cluster: 'default', user: 'default' } }],
  }
  await writeFileAtomic(file, `${JSON.stringify(kubeconfig, null, 2)}\n`, 0o600)
}
