/** Where a control plane that has joined keeps its files (L5, pure). The names are kubeadm's, but for the plan. */
import path from 'node:path'

export interface ControlPlaneFiles {
  readonly pki: string
  readonly plan: string
  readonly admin: string
  readonly controllerManager: string
  readonly scheduler: string
}

export function controlPlaneFiles(configDir: string): ControlPlaneFiles {
  const at = (name: string) => path.resolve(configDir, name)
  return {
    pki: at('pki'),
    plan: at('control-plane.json'),
    admin: at('admin.conf'),
    controllerManager: at('controller-manager.conf'),
    scheduler: at('scheduler.conf'),
  }
}
