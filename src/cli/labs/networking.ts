/** The lab on networking (L4). */
import { endpointSlices, networkPolicies, services } from '#client/builtIn'
import type { Lab } from './lab.ts'
import type { Look } from './look.ts'
import { passes } from './outcome.ts'
import { create } from './workloads.ts'

async function readyAddresses(look: Look, service: string): Promise<string[]> {
  const slices = await look.list(endpointSlices, `kubernetes.io/service-name=${service}`)
  return slices.flatMap(({ endpoints }) => (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).flatMap(({ addresses }) => addresses))
}

export const networking: Lab = {
  number: 9,
  title: 'Networking',
  about: 'A Service is a name for the ready pods that its selector matches; policies say which of them may be reached.',
  start: async (look) => {
    await create.deployment(look, 'web', 2)
    await look.create(services, { metadata: { name: 'web' }, spec: { selector: { app: 'wbe' }, ports: [{ port: 80, targetPort: 8080 }] } } as never)
  },
  tasks: [
    {
      text: 'The Service "web" has no endpoints. Find out why (`skiff why service/web -n lab-09`), and repair the Service.',
      hint: `kubectl patch service web -n lab-09 --type=merge -p '{"spec":{"selector":{"app":"web"}}}'
kubectl rollout status deployment web -n lab-09 --timeout=60s`,
      check: async (look) => {
        const addresses = await readyAddresses(look, 'web')
        return passes(addresses.length === 2, `${addresses.length} endpoints${addresses.length > 0 ? `: ${addresses.join(', ')}` : ''}`)
      },
    },
    {
      text: 'Make a headless Service "direct" for the same pods: DNS answers with their addresses instead of one virtual address.',
      hint: `kubectl create service clusterip direct -n lab-09 --clusterip=None --tcp=80:8080 --dry-run=client -o yaml | sed 's/app: direct/app: web/' | kubectl apply -n lab-09 -f -`,
      check: async (look) => {
        const service = await look.get(services, 'direct')
        const addresses = await readyAddresses(look, 'direct')
        return passes(
          service?.spec?.clusterIP === 'None' && addresses.length === 2,
          service ? `clusterIP is ${service.spec?.clusterIP}, ${addresses.length} endpoints` : 'there is no Service direct',
        )
      },
    },
    {
      text: 'Close the namespace lab-09 for incoming traffic with a NetworkPolicy "deny" for all pods, and let pods with the label role=client reach the pods of "web" on port 8080 with a second policy "allow".',
      hint: `echo '{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"deny"},"spec":{"podSelector":{},"policyTypes":["Ingress"]}}' | kubectl apply -n lab-09 -f -
echo '{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"allow"},"spec":{"podSelector":{"matchLabels":{"app":"web"}},"ingress":[{"from":[{"podSelector":{"matchLabels":{"role":"client"}}}],"ports":[{"port":8080}]}]}}' | kubectl apply -n lab-09 -f -`,
      check: async (look) => {
        const [deny, allow] = await Promise.all(['deny', 'allow'].map((name) => look.get(networkPolicies, name)))
        const isClosed =
          Object.keys(deny?.spec?.podSelector ?? { x: 1 }).length === 0 && deny?.spec?.policyTypes?.includes('Ingress') && !deny.spec.ingress?.length
        const [rule] = allow?.spec?.ingress ?? []
        const from = rule?.from?.[0]?.podSelector?.matchLabels?.role
        const isOpen = allow?.spec?.podSelector?.matchLabels?.app === 'web' && from === 'client' && rule?.ports?.[0]?.port === 8080
        return passes(
          Boolean(isClosed) && isOpen,
          `"deny" ${isClosed ? 'closes all pods' : 'does not close all pods'}, "allow" ${isOpen ? 'lets role=client in' : 'does not let role=client in'}`,
        )
      },
    },
  ],
}
