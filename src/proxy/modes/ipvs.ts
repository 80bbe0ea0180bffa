/**
 * Services in the kernel's load balancer IPVS (L3), deprecated by upstream since v1.35: a virtual server for each address and port with its endpoints, the addresses on
 * an interface of their own, and sets of addresses that a few rules of iptables look in to masquerade.
 */
import { check } from '#host/exec'
import { iptablesObstacle } from '#host/iptables'
import type { ProxyMode, ProxyModeDeps } from './mode.ts'

/** Holds the addresses of Services: what is sent to them is delivered on this host. */
const device = 'kube-ipvs0'
const settings = ['net.ipv4.vs.conntrack=1', 'net.ipv4.vs.conn_reuse_mode=0', 'net.ipv4.vs.expire_nodest_conn=1', 'net.ipv4.vs.expire_quiescent_template=1']

export const ipvs: ProxyMode = {
  name: 'ipvs',
  obstacle: async (exec, family) => {
    const { code, stderr } = await exec.run('ipvsadm', ['--list', '--numeric'])
    if (code === -1) return 'ipvsadm is not installed; the package ipvsadm has it'
    if (code !== 0) return `the kernel has no IPVS, which upstream deprecates: ${stderr.trim() || `exit ${code}`}; modprobe ip_vs loads it where it is a module`
    if ((await exec.run('ipset', ['--version'])).code === -1) return 'ipset is not installed; the package ipset has it'
    return iptablesObstacle(exec, family)
  },
  prepare,
  run: async (deps, models, signal) => {
    deps.log.warn('The proxy mode ipvs is deprecated: use nftables')
    await prepare(deps)
    const { applyIpvs } = await import('./ipvs/apply.ts')
    await applyIpvs(deps, models, device, signal)
  },
  cleanUp: async (exec) => {
    // Without a device of ours there was no run.
    if ((await exec.run('ip', ['link', 'del', device])).code !== 0) return
    const { removeIpvs } = await import('./ipvs/apply.ts')
    await removeIpvs(exec)
  },
}

async function prepare({ exec }: Pick<ProxyModeDeps, 'exec'>): Promise<void> {
  await check(exec, 'sysctl', ['-w', ...settings])
  await exec.run('ip', ['link', 'add', device, 'type', 'dummy'])
}
