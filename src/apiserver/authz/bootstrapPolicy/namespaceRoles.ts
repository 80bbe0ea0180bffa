/** Roles and bindings inside the system namespaces (L3, data). Upstream: bootstrappolicy/namespace_policy.go (v1.36). */
import { events, read, type ShortRule } from './shorthand.ts'

interface NamespaceRole {
  readonly namespace: string
  readonly name: string
  readonly rules: readonly ShortRule[]
}

interface NamespaceBinding {
  readonly namespace: string
  readonly name: string
  readonly role: string
  readonly subjects: readonly string[]
}

const system = 'kube-system'

const leaderLocking = (component: string): readonly ShortRule[] => [
  ['watch', '-', 'configmaps'],
  ['get update', '-', 'configmaps', component],
]

export const namespaceRoles: readonly NamespaceRole[] = [
  { namespace: system, name: 'extension-apiserver-authentication-reader', rules: [[read, '-', 'configmaps', 'extension-apiserver-authentication']] },
  { namespace: system, name: 'system:controller:bootstrap-signer', rules: [[read, '-', 'secrets']] },
  { namespace: system, name: 'system:controller:cloud-provider', rules: [['create get list watch', '-', 'configmaps']] },
  { namespace: system, name: 'system:controller:token-cleaner', rules: [['delete get list watch', '-', 'secrets'], events] },
  { namespace: system, name: 'system::leader-locking-kube-controller-manager', rules: leaderLocking('kube-controller-manager') },
  { namespace: system, name: 'system::leader-locking-kube-scheduler', rules: leaderLocking('kube-scheduler') },
  {
    namespace: 'kube-public',
    name: 'system:controller:bootstrap-signer',
    rules: [[read, '-', 'configmaps'], ['update', '-', 'configmaps', 'cluster-info'], events],
  },
]

const account = (name: string) => `ServiceAccount:${system}/${name}`

export const namespaceBindings: readonly NamespaceBinding[] = [
  {
    namespace: system,
    name: 'system::extension-apiserver-authentication-reader',
    role: 'extension-apiserver-authentication-reader',
    subjects: ['User:system:kube-controller-manager', 'User:system:kube-scheduler'],
  },
  ...['kube-controller-manager', 'kube-scheduler'].map((component) => ({
    namespace: system,
    name: `system::leader-locking-${component}`,
    role: `system::leader-locking-${component}`,
    subjects: [`User:system:${component}`, account(component)],
  })),
  ...['bootstrap-signer', 'cloud-provider', 'token-cleaner'].map((controller) => ({
    namespace: system,
    name: `system:controller:${controller}`,
    role: `system:controller:${controller}`,
    subjects: [account(controller)],
  })),
  { namespace: 'kube-public', name: 'system:controller:bootstrap-signer', role: 'system:controller:bootstrap-signer', subjects: [account('bootstrap-signer')] },
]
