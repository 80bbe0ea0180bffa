/** The resolver files that pods get. Upstream: test/e2e/network/dns.go. */
import assert from 'node:assert/strict'
import { services } from '#client/builtIn'
import type { BehaviourGroup } from '../behaviour.ts'

export const dnsFiles: BehaviourGroup = {
  sig: 'sig-network',
  title: 'Pod DNS files',
  rows: ['KUB-20'],
  behaviours: [
    {
      name: '/etc/hosts entries',
      run: async (context) => {
        await context.create(services, { metadata: { name: 'heads' }, spec: { clusterIP: 'None', selector: { app: 'headed' }, ports: [{ port: 1234 }] } })
        const pod = await context.readyPod({ labels: { app: 'headed' }, script: 'sleep 600', spec: { hostname: 'one', subdomain: 'heads' } })
        const name = pod.metadata.name ?? ''
        const fqdn = `one.heads.${context.namespace}.svc.cluster.local`
        assert.match(await context.execText(name, 'cat /etc/hosts'), new RegExp(`^${pod.status?.podIP?.replaceAll('.', '\\.')}\\s+${fqdn}\\s+one$`, 'm'))
        assert.equal(await context.execText(name, 'hostname -f'), fqdn)
        assert.equal(await context.execText(name, 'hostname'), 'one')
      },
    },
    {
      name: 'dnsPolicy None with custom dnsConfig',
      run: async ({ outputOf }) => {
        const dnsConfig = { nameservers: ['1.1.1.1'], searches: ['resolv.conf.local'], options: [{ name: 'ndots', value: '2' }] }
        const text = await outputOf({ script: 'cat /etc/resolv.conf', spec: { dnsPolicy: 'None', dnsConfig } })
        assert.deepEqual(text.split('\n').filter(Boolean), ['search resolv.conf.local', 'nameserver 1.1.1.1', 'options ndots:2'])
      },
    },
  ],
}
