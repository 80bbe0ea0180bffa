/** The last lines of `up` (L4): commands to try that need no registry, and a source of kubectl when it is missing. */
import { arch } from 'node:os'
import path from 'node:path'
import { kubernetesRelease } from '#base/version'
import { exists } from '#host/files'
import type { ClusterStatus } from './clusterManager.ts'
import type { CommandContext } from './command.ts'

/** @param isKubeconfigLeft the cluster is in no kubeconfig */
export async function nextSteps({ env, platform }: CommandContext, { name, nodes }: ClusterStatus, isKubeconfigLeft: boolean): Promise<string> {
  const kubectl = isKubeconfigLeft ? 'kubectl --kubeconfig FILE' : `kubectl --context skiff-${name}`
  // A simulated node runs an image of any name.
  const hasRealNodes = nodes.some(({ runtime }) => runtime === 'containerd')
  const commands = [
    ...(isKubeconfigLeft ? [`skiff kubeconfig get ${name} >FILE`] : []),
    `${kubectl} get nodes`,
    ...(hasRealNodes ? [`docker save web:1.0 -o web.tar; skiff image load --name ${name} web.tar`] : []),
    `${kubectl} create deployment web --image=web:1.0`,
    ...(isKubeconfigLeft ? [] : [`skiff status ${name}`]),
  ]
  const lines = commands.map((command, i) => `${i === 0 ? 'Try:' : '    '}  ${command}`)
  if (!(await isOnPath('kubectl', env.PATH ?? ''))) {
    lines.push(
      `kubectl is not on the PATH. Get it with: curl -LO https://dl.k8s.io/release/${kubernetesRelease}/bin/${platform}/${goArchitecture(arch())}/kubectl`,
    )
    lines.push('Other ways are on https://kubernetes.io/docs/tasks/tools/')
  }
  return lines.join('\n')
}

/** Go's name of Node's. */
function goArchitecture(name: string): string {
  return name === 'x64' ? 'amd64' : name
}

async function isOnPath(program: string, directories: string): Promise<boolean> {
  for (const directory of directories.split(path.delimiter).filter(Boolean)) {
    if (await exists(path.join(directory, program), 'run')) return true
  }
  return false
}
