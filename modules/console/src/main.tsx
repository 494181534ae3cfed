// The console: starts the shell in the page.
import { render } from 'preact';
import { Shell } from './shell';

const app = document.getElementById('app');
if (app) render(<Shell />, app);
