/** What this machine is in its cluster (L5), as its files say: a node, a control plane, both or neither. */
import { X509Certificate } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '#base/messageOf'
import { CommandError } from '#cli/exitCodes'
import { readKubeconfig } from '#client/kubeconfigFiles'
import { exists, readTextIfExists } from '#host/files'
import type { ControlPlanePlan } from '../join/controlPlanePlan.ts'
import { machine } from '../package/connect.ts'
import type { LeaveOptions } from './leaveOptions.ts'

export interface JoinedNode {
  /** As the kubelet's certificate says; undefined when it never got one. */
  readonly name: string | undefined
  readonly kubeconfig: string
  readonly bootstrap: string
  readonly ca: string
  /** The kubelet's configuration. */
  readonly config: string
}

export interface JoinedParts {
  readonly node: JoinedNode | undefined
  readonly controlPlane: ControlPlanePlan | undefined
}

/** @throws CommandError notFound when the machine is in no cluster */
export async function joinedParts({ configDir, rootDir, files }: LeaveOptions): Promise<JoinedParts> {
  const [kubeconfig, bootstrap] = ['kubelet.conf', 'bootstrap-kubelet.conf'].map((name) => path.join(configDir, name)) as [string, string]
  const config = path.join(rootDir, 'config.yaml')
  const isNode = (await Promise.all([kubeconfig, bootstrap, config].map((file) => exists(file)))).some(Boolean)
  const plan = await readTextIfExists(files.plan)
  if (!isNode && plan === undefined) {
    throw new CommandError('notFound', `this machine has joined no cluster: neither ${kubeconfig} nor ${files.plan} is there`, {
      hint: 'name the folders of the join: --config-dir, --root-dir',
    })
  }
  const node = isNode ? { name: await nodeName(kubeconfig), kubeconfig, bootstrap, config, ca: path.join(configDir, 'pki/ca.crt') } : undefined
  return { node, controlPlane: plan === undefined ? undefined : planOf(plan, files.plan) }
}

function planOf(text: string, file: string): ControlPlanePlan {
  try {
    return JSON.parse(text) as ControlPlanePlan
  } catch (error) {
    throw new CommandError('internal', `${file} is damaged: ${messageOf(error)}`, { hint: 'remove it if this machine is no control plane', cause: error })
  }
}

/** Undefined without a kubeconfig, and without a certificate of a node in it. */
async function nodeName(kubeconfig: string): Promise<string | undefined> {
  if (!(await exists(kubeconfig))) return undefined
  try {
    const { users } = await readKubeconfig(machine, kubeconfig)
    const { 'client-certificate': file, 'client-certificate-data': data } = users?.[0]?.user ?? {}
    const pem = data ? Buffer.from(data, 'base64') : await fs.readFile(file ?? '')
    return /^CN=system:node:(.+)$/m.exec(new X509Certificate(pem).subject)?.[1]
  } catch {
    return undefined
  }
}
