/** Network namespaces (L1): named ones under /run/netns, made and removed through ip(8), and the prefix that runs a command in one. */
import { check, type Exec } from './exec.ts'

export interface NetworkNamespaces {
  create(name: string): Promise<void>
  /** An absent namespace is fine. */
  delete(name: string): Promise<void>
  list(): Promise<string[]>
}

/** Named network namespaces, as `ip netns` keeps them. */
export function createNetworkNamespaces(exec: Exec): NetworkNamespaces {
  const list = async () => {
    const text = await check(exec, 'ip', ['-json', 'netns', 'list'])
    const parsed = (text.trim() === '' ? [] : JSON.parse(text)) as { name?: string }[]
    return parsed.flatMap((entry) => (entry.name ? [entry.name] : []))
  }
  return {
    list,
    create: async (name) => {
      await check(exec, 'ip', ['netns', 'add', name])
    },
    delete: async (name) => {
      const result = await exec.run('ip', ['netns', 'delete', name])
      if (result.code !== 0 && (await list()).includes(name)) throw new Error(`ip netns delete ${name}: ${result.stderr.trim()}`)
    },
  }
}

/**
 * The prefix for createExec that enters a named network namespace and nothing else.
 * Not `ip netns exec`: that remounts /sys, which hides the cgroup hierarchies.
 */
export function inNetworkNamespace(name: string): string[] {
  return ['nsenter', `--net=/run/netns/${name}`, '--']
}
