import { mount } from 'svelte';
import App from './App.svelte';
import './app.css';
import { startTheme } from './state/theme';

startTheme();
const target = document.getElementById('app')!;
target.replaceChildren();
mount(App, { target });
