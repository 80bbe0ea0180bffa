/**
 * The name servers of the host for its nodes (L5), which have network namespaces of their own. Where the host asks a stub on its loopback, the servers behind the
 * stub are taken from the files that systemd-resolved and NetworkManager keep of them.
 */
import { readTextIfExists } from '#host/files'

const files = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf', '/run/NetworkManager/no-stub-resolv.conf'] as const

/** The text of a resolv.conf without servers that only the host itself can reach. */
export async function hostResolvConf(read: (file: string) => Promise<string | undefined> = readTextIfExists): Promise<string> {
  const [first = '', ...behind] = await Promise.all(files.map(async (file) => reachable((await read(file)) ?? '')))
  return [first, ...behind].find((text) => /^\s*nameserver\s/m.test(text)) ?? first
}

function reachable(text: string): string {
  const lines = text.split('\n').filter((line) => !/^\s*nameserver\s+(127\.|::1|0\.0\.0\.0|localhost)/.test(line))
  return lines.join('\n').trim()
}
