import assert from 'node:assert/strict'
import { test } from 'node:test'
import { webhookTarget } from './webhookTarget.ts'

const nowhere = () => ({ host: '', port: 0 })
const cases = [
  { name: 'a path is kept', config: { url: 'https://127.0.0.1:9443/validate' }, want: 'https://127.0.0.1:9443/validate' },
  { name: 'repeated slashes become one', config: { url: 'https://127.0.0.1:9443//mutate//v1' }, want: 'https://127.0.0.1:9443/mutate/v1' },
  { name: 'a closing slash is dropped', config: { url: 'https://hooks.example.com/a/' }, want: 'https://hooks.example.com/a' },
  { name: 'no path is the root', config: { url: 'https://hooks.example.com' }, want: 'https://hooks.example.com/' },
  { name: 'the path of a service is cleaned', config: { service: { namespace: 'n', name: 's', path: '//a' } }, want: 'https://s.n.svc:443/a' },
  { name: 'a service without a path is called at its root', config: { service: { namespace: 'n', name: 's' } }, want: 'https://s.n.svc:443/' },
]
for (const { name, config, want } of cases) test(`CRD-07 webhook URL: ${name}`, () => assert.equal(webhookTarget(config, nowhere).url, want))
