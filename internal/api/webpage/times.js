for (const time of document.querySelectorAll('time')) {
  const at = new Date(time.dateTime);
  if (isNaN(at)) continue;
  time.title = time.textContent;
  // Dates and times apart: browsers join them with different words.
  time.textContent = at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' }) + ', ' +
    at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', timeZoneName: 'short' });
}
