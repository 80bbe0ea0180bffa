/** The page's entry (L4). */
import { render } from 'preact'
import '@xterm/xterm/css/xterm.css'
import 'uplot/dist/uPlot.min.css'
import { App } from './app.tsx'
import { Loading } from './parts/basics.tsx'
import { begin, session } from './session.ts'
import './styles/base.css'
import './styles/frame.css'
import './styles/lists.css'
import './styles/object.css'
import './styles/explanation.css'
import './styles/dialogs.css'
import './styles/waterfall.css'
import './styles/inside.css'
import './styles/phone.css'
import { Login } from './views/login.tsx'

function Page() {
  if (session.value === 'asking') return <Loading text="Connecting…" />
  return session.value === 'none' ? <Login /> : <App />
}

const root = document.getElementById('page')
if (root) render(<Page />, root)
void begin()
